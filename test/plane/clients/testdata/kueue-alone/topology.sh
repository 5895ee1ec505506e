# Topology-aware scheduling of Jobs: by the system of a node and by its name, which every node has. Kueue assigns nodes to the pods of a Job, which wait at
# a scheduling gate until it has. One pod of a Job is lost and comes again; a Job that fits on no node waits, while another one runs.
trap 'kubectl delete clusterqueue/"$queue" resourceflavor/"$queue" topology/"$queue" --wait=false >/dev/null' EXIT
kubectl create -f - >/dev/null <<-Y
	{apiVersion: kueue.x-k8s.io/v1beta2, kind: Topology, metadata: {name: $queue}, spec: {levels: [{nodeLabel: kubernetes.io/os}, {nodeLabel: kubernetes.io/hostname}]}}
	---
	{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: $queue}, spec: {nodeLabels: {kubernetes.io/os: linux}, topologyName: $queue}}
	---
	{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: $queue}, spec: {namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: $queue, resources: [{name: cpu, nominalQuota: 1M}]}]}]}}
	---
	{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: q}, spec: {clusterQueue: $queue}}
Y
# on TOPOLOGY CPUS NAME FIELDS COMMAND creates a Job whose pods ask for CPUS, and for a topology.
on() {
	local topology=$1 cpus=$2
	manifest "$3" '' "$4" "$5" | sed "s/template: {/&metadata: {annotations: {kueue.x-k8s.io\/podset-$topology}}, /; s/cpu: 1}/cpu: $cpus}/" | create
}
hostname='required-topology: kubernetes.io\/hostname'
on "$hostname" 10m a 'completions: 3, parallelism: 3, completionMode: Indexed, backoffLimit: 3,' 'sleep 10'
until_value job/a .status.ready 3
node=$(kubectl get workload -o jsonpath='{.items[0].status.admission.podSetAssignments[0].topologyAssignment.slices[0].valuesPerLevel[0].universal}')
kubectl get pods -l job-name=a -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | sed "s/^$node\$/on its node/"
kubectl delete pod -l batch.kubernetes.io/job-completion-index=1 --wait=false | sed 's/".*"/a pod/'
until_true job/a Complete
on 'preferred-topology: kubernetes.io\/hostname' 10m b 'completions: 2, parallelism: 2,' 'sleep 1'
until_true job/b Complete
on "$hostname" 100k c '' 'sleep 1'
kubectl wait --for=create workload -l kueue.x-k8s.io/job-uid="$(kubectl get job c -o jsonpath='{.metadata.uid}')" --timeout=60s >/dev/null
until_value job/c .spec.suspend true
on "$hostname" 10m d '' 'sleep 1'
until_true job/d Complete
kubectl get job c -o jsonpath='c is suspended: {.spec.suspend}{"\n"}'
kubectl delete job c
