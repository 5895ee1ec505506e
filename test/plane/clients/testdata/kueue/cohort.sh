# A Job borrows the quota of another queue. When a Job of that queue needs it, the first one is stopped, and runs again afterwards.
trap 'kubectl delete clusterqueue "$queue" "$queue-lender" --wait=false >/dev/null' EXIT
quota 1 'cohortName: all,'
kubectl apply --server-side -f - >/dev/null <<-Y
	{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: $queue-lender}, spec: {cohortName: all, preemption: {reclaimWithinCohort: Any}, namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: plain, resources: [{name: cpu, nominalQuota: 1}]}]}]}}
	---
	{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: lender}, spec: {clusterQueue: $queue-lender}}
Y
job a '' 'parallelism: 2, completions: 2,' 'sleep 8'
until_value job/a .status.ready 2
manifest b '' '' 'sleep 2' | sed 's/queue-name: q}/queue-name: lender}/' | create
until_true job/a Suspended
until_true job/b Complete
until_true job/a Complete
