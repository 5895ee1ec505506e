# A rule restarts only the Job that failed.
jobset a <<Y
failurePolicy:
  maxRestarts: 1
  rules: [{name: alone, action: RestartJob}]
replicatedJobs:
$(group leader 1 1 'sleep 2; exit 1')
$(group workers 1 1 'sleep 100')
Y
until_true jobset/a Failed
kubectl get jobset a -o jsonpath='{.status.restarts}{"\n"}'
