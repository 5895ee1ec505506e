# A Job whose first index is done is suspended and resumed: only the second index gets a pod (jobset#1208, kueue#10487).
jobset a <<Y
replicatedJobs:
$(group workers 1 2 'test $JOB_COMPLETION_INDEX = 0 && sleep 1 || sleep 8' 'completionMode: Indexed,')
Y
until_value job/a-workers-0 .status.completedIndexes 0
kubectl patch jobset a --type=merge -p '{"spec":{"suspend":true}}'
until_true jobset/a Suspended
until_true job/a-workers-0 Suspended
kubectl patch jobset a --type=merge -p '{"spec":{"suspend":false}}'
until_value job/a-workers-0 .status.ready 1
kubectl get job a-workers-0 -o jsonpath='{.status.active} of {.spec.parallelism} pods{"\n"}'
until_true jobset/a Completed
