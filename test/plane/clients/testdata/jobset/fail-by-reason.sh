# A rule fails the JobSet for the reason of a Job, although restarts are left.
jobset a <<Y
failurePolicy:
  maxRestarts: 3
  rules: [{name: gaveup, action: FailJobSet, onJobFailureReasons: [BackoffLimitExceeded]}]
replicatedJobs:
$(group leader 1 1 'sleep 2; exit 1')
$(group workers 1 1 'sleep 100')
Y
until_true jobset/a Failed
until_inactive
