# kubectl describes a finished and a failed Job.
job a '' 'sleep 1'
job b '' 'sleep 1; exit 1'
until_true job/a Complete
until_true job/b Failed
until_prints 4 events
kubectl describe job a
kubectl describe job b
kubectl get jobs --no-headers
