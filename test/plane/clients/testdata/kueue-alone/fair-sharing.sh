# Two queues borrow the quota of a third one, which nobody else needs. The first one takes all, until the second one takes its half.
trap 'kubectl delete clusterqueue "$queue" "$queue-other" "$queue-lender" --wait=false >/dev/null' EXIT
quota 0 'cohortName: shared, preemption: {reclaimWithinCohort: Any},'
other() {
	printf '{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: %s}, spec: {cohortName: shared, preemption: {reclaimWithinCohort: Any}, namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: plain, resources: [{name: cpu, nominalQuota: %d}]}]}]}}' "$queue-$1" "$2" | kubectl create -f - >/dev/null
}
other lender 4
other other 0
printf '{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: other}, spec: {clusterQueue: %s}}' "$queue-other" | create
for name in a b c d; do
	job $name '' '' 'sleep 300'
	until_value job/$name .status.ready 1
	sleep 1.2 # Times of creation, by which Kueue orders Jobs, have whole seconds.
done
for name in e f g; do
	manifest $name '' '' 'sleep 8' | sed 's/queue-name: q}/queue-name: other}/' | create
	sleep 1.2
done
for name in e f; do until_value job/$name .status.ready 1; done
kubectl get jobs -o jsonpath='suspended: {range .items[?(@.spec.suspend==true)]}{.metadata.name} {end}{"\n"}'
for name in e f g; do until_true job/$name Complete; done
for name in c d; do until_value job/$name .status.ready 1; done
kubectl delete job a b c d
