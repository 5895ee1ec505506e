# Somebody waits until a Job fails; it is complete, and its time to live ends (kubectl#1482).
job a 'ttlSecondsAfterFinished: 1,' 'sleep 3'
patience 40 kubectl wait --for=condition=failed job/a --timeout=40s
kubectl get jobs -o name
