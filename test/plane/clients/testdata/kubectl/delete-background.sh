# The pods of a Job go after it.
job a 'completions: 2, parallelism: 2,' 'sleep 100'
until_value job/a .status.ready 2
kubectl delete job a --cascade=background
until_gone pods
