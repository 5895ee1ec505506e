# The pods of a Job stay when it is deleted, and are let go.
job a 'completions: 2, parallelism: 2,' 'sleep 5'
until_value job/a .status.ready 2
kubectl delete job a --cascade=orphan
pods_let_go
kubectl wait --for=jsonpath='{.status.phase}'=Succeeded pod --all --timeout=60s | wc -l
