# One Job fails on the worker, and an index of another one. Both have failed here, too, and the next one gets their quota.
queues 2
job a '' '' 'sleep 1; exit 1'
printf '{apiVersion: batch/v1, kind: Job, metadata: {name: b, labels: {kueue.x-k8s.io/queue-name: q}}, spec: {suspend: true, completions: 2, parallelism: 1, completionMode: Indexed, backoffLimitPerIndex: 0, %s}}' \
	"$(pod 'sleep 1; [ $JOB_COMPLETION_INDEX = 1 ]' | sed 's/{name: main,/& resources: {requests: {cpu: 1}},/')" | create
until_true job/a Failed
until_true job/b Failed
mine job/a
kubectl get job b -o jsonpath='{.status.completedIndexes} done, {.status.failedIndexes} failed{"\n"}'
job c '' 'completions: 2, parallelism: 2,' 'sleep 1'
until_true job/c Complete
on_worker kubectl wait --for=delete job/a job/b job/c --timeout=60s >/dev/null
until_value "clusterqueue/$queue" .status.reservingWorkloads 0
