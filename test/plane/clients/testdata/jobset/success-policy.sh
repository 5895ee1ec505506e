# The end of one Job is the end of all.
jobset a <<Y
successPolicy: {operator: Any, targetReplicatedJobs: [leader]}
replicatedJobs:
$(group leader 1 1 'sleep 2')
$(group workers 2 1 'sleep 100')
Y
until_true jobset/a Completed
until_inactive
