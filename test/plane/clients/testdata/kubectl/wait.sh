# kubectl waits for a counter, the end and the deletion of Jobs.
job a 'completions: 2,' 'sleep 1'
job b '' 'sleep 1; exit 1'
kubectl wait --for=jsonpath='{.status.succeeded}'=1 job/a --timeout=60s
kubectl wait --for=condition=Complete job/a --timeout=60s
kubectl wait --for=condition=Failed job/b --timeout=60s
kubectl delete job a --wait=false
kubectl wait --for=delete job/a --timeout=60s
