# A rule fails the JobSet for the message of a Job, which names the exit code.
jobset a <<Y
failurePolicy:
  maxRestarts: 3
  rules: [{name: three, action: FailJobSet, onJobFailureMessagePatterns: ['.*exit code 3 .*']}]
replicatedJobs:
$(group leader 1 1 'sleep 2; exit 3' 'podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [3]}}]},')
$(group workers 1 1 'sleep 100')
Y
until_true jobset/a Failed
until_inactive
