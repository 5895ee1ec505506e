# The quota of pods that are done goes to the next Job while others of the same Job run.
quota 3
job a '' 'completions: 3, parallelism: 3, completionMode: Indexed,' 'sleep $((1 + JOB_COMPLETION_INDEX * 8))'
job b '' '' 'sleep 1'
until_true job/b Complete
kubectl get job a -o jsonpath='{.status.completedIndexes}{"\n"}'
until_true job/a Complete
