# A Job fails again and again.
jobset a <<Y
failurePolicy: {maxRestarts: 2}
replicatedJobs:
$(group leader 1 1 'sleep 4; exit 1')
$(group workers 1 1 'sleep 100')
Y
until_true jobset/a Failed
kubectl get jobset a -o jsonpath='{.status.restarts}{"\n"}'
until_inactive
