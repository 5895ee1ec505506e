# A Job fails once; all Jobs begin again, and end well.
jobset a <<Y
failurePolicy: {maxRestarts: 1}
replicatedJobs:
$(group leader 1 1 'sleep 2; test $ATTEMPT = 1')
$(group workers 2 1 'test $ATTEMPT = 1 || sleep 100')
Y
until_true jobset/a Completed
kubectl get jobset a -o jsonpath='{.status.restarts}{"\n"}'
