# An index fails for good while two others run, and none is left. Its quota can go to the next Job, as that of an index that succeeded.
quota 3
printf '{apiVersion: batch/v1, kind: Job, metadata: {name: a, labels: {kueue.x-k8s.io/queue-name: q}}, spec: {suspend: true, completions: 4, parallelism: 3, completionMode: Indexed, backoffLimitPerIndex: 0, %s}}' \
	"$(pod 'sleep $((1 + JOB_COMPLETION_INDEX / 2 * 15)); [ $JOB_COMPLETION_INDEX != 1 ]' | sed 's/{name: main,/& resources: {requests: {cpu: 1}},/')" | create
job b '' '' 'sleep 1'
until_true job/b Complete
completed=$(kubectl get job a -o jsonpath='{.status.completedIndexes}')
echo "done while both run: $([ "$completed" = 0 ] && echo yes || echo no)"
until_true job/a Failed
