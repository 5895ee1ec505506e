# kubectl waits for the end, a counter and the deletion of a Job.
create <<Y
apiVersion: batch/v1
kind: Job
metadata: {name: a}
spec: {completions: 2, parallelism: 1, $(pod 'sleep 1')}
Y
kubectl wait --for=jsonpath='{.status.succeeded}'=1 job/a --timeout=60s
kubectl wait --for=condition=Complete job/a --timeout=60s
kubectl delete job a --wait=false
kubectl wait --for=delete job/a --timeout=60s
until [ -z "$(kubectl get pods -o name)" ]; do sleep 0.5; done
