# For scenarios of Kueue. All use the local queue q of a cluster queue of their own.

queue=$(kubectl config view --minify -o jsonpath='{..namespace}')
trap 'kubectl delete clusterqueue "$queue" --wait=false >/dev/null' EXIT

# quota CPUS [FIELDS] makes the queue. FIELDS are further ones of the cluster queue, in flow style, each with a comma behind it.
quota() {
	kubectl apply --server-side -f - >/dev/null <<-Y
		{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: plain}}
		---
		{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: high}, value: 100}
		---
		{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: $queue}, spec: {${2:-} namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: plain, resources: [{name: cpu, nominalQuota: $1}]}]}]}}
		---
		{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: q}, spec: {clusterQueue: $queue}}
	Y
}

# job NAME LABELS FIELDS COMMAND creates a Job whose pods ask for one CPU. LABELS are further ones of it, FIELDS further ones of
# its spec, in flow style, each with a comma behind it.
job() { manifest "$@" | create; }

# manifest prints such a Job.
manifest() {
	printf '{apiVersion: batch/v1, kind: Job, metadata: {name: %s, labels: {%s kueue.x-k8s.io/queue-name: q}}, spec: {suspend: true, backoffLimit: 0, %s %s}}\n' \
		"$1" "$2" "$3" "$(pod "$4" | sed 's/{name: main,/& resources: {requests: {cpu: 1}},/')"
}
