# A Job is successful with its first index.
jobset a <<Y
replicatedJobs:
$(group workers 2 3 'test $JOB_COMPLETION_INDEX = 0 && sleep 2 || sleep 100' 'completionMode: Indexed, successPolicy: {rules: [{succeededIndexes: "0"}]},')
Y
until_true jobset/a Completed
