# An elastic Job: its quota follows its parallelism. One more pod waits until another Job has ended; indexes that succeed give their quota
# to the next Job, and so does a smaller parallelism. The pod that came last is stopped then.
quota 4
reserved() { until_value clusterqueue/$queue '.status.flavorsReservation[0].resources[0].total' "$1"; }
scale() { kubectl patch job a -p "{\"spec\": {\"parallelism\": $1}}"; }
job b '' '' 'sleep 300'
until_value job/b .status.ready 1
manifest a '' 'completions: 4, parallelism: 3, completionMode: Indexed,' 'sleep $((JOB_COMPLETION_INDEX > 1 ? 300 : 25))' |
	sed 's/labels:/annotations: {kueue.x-k8s.io\/elastic-job: "true"}, &/' | create
until_value job/a .status.ready 3
reserved 4
scale 4
until_value job/a .status.active 4
kubectl get pods -l batch.kubernetes.io/job-completion-index=3 -o jsonpath='waits: {.items[*].spec.schedulingGates[*].name}{"\n"}'
kubectl delete job b
until_value job/a .status.ready 4
until_value job/a .status.succeeded 2
reserved 2
job c '' 'completions: 2, parallelism: 2,' 'sleep 1'
until_true job/c Complete
scale 1
until_value job/a .status.active 1
reserved 1
job d '' 'completions: 3, parallelism: 3,' 'sleep 1'
until_true job/d Complete
kubectl get job a -o jsonpath='done: {.status.completedIndexes}, active: {.status.active}, failed: {.status.failed}{"\n"}'
kubectl delete job a
