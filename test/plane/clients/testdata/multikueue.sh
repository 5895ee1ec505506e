# For scenarios of MultiKueue. The Jobs in queue q run on the worker, which has such a queue, too.
. "$TESTDATA/kueue.sh"
trap 'kubectl delete clusterqueue,admissioncheck,multikueueconfig,multikueuecluster "$queue" --wait=false >/dev/null; kubectl delete secret -n kueue-system "$queue" >/dev/null; on_worker kubectl delete clusterqueue "$queue" --wait=false >/dev/null' EXIT

# on_worker COMMAND... does on the worker what a function or program does here.
on_worker() { KUBECONFIG=$WORKER "$@"; }

# address [ADDRESS] tells Kueue how to reach the worker: at ADDRESS, or where it is.
address() {
	on_worker kubectl config view --raw --flatten | sed "s,https://.*,${1:-&}," >worker
	kubectl create secret generic -n kueue-system "$queue" --from-file=kubeconfig=worker --dry-run=client -o yaml |
		kubectl apply --server-side -f - >/dev/null
}

# queues CPUS makes the queue, on both. No Job may have pods here.
queues() {
	pods_at_most 0
	on_worker quota "$1"
	address
	kubectl apply --server-side -f - >/dev/null <<-Y
		{apiVersion: kueue.x-k8s.io/v1beta2, kind: MultiKueueCluster, metadata: {name: $queue}, spec: {clusterSource: {kubeConfig: {location: $queue}}}}
		---
		{apiVersion: kueue.x-k8s.io/v1beta2, kind: MultiKueueConfig, metadata: {name: $queue}, spec: {clusters: [$queue]}}
		---
		{apiVersion: kueue.x-k8s.io/v1beta2, kind: AdmissionCheck, metadata: {name: $queue}, spec: {controllerName: kueue.x-k8s.io/multikueue, parameters: {apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: $queue}}}
	Y
	quota "$1" "admissionChecksStrategy: {admissionChecks: [{name: $queue}]},"
	until_true "multikueuecluster/$queue" Active
	until_true "clusterqueue/$queue" Active
}

# mine JOB shows who manages a Job here, and who has written its status.
mine() {
	kubectl get "$1" --show-managed-fields -o jsonpath='managed by {.spec.managedBy}, status by {range .metadata.managedFields[?(@.subresource=="status")]}{.manager} {end}{"\n"}'
}
