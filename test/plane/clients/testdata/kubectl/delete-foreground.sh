# The pods of a Job go before it.
BACKOFF=6 job a 'completions: 2, parallelism: 2,' 'sleep 100'
until_value job/a .status.ready 2
kubectl delete job a --cascade=foreground
kubectl get pods -o name
