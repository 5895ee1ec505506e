# Somebody waits until a Job fails; it is complete, and its time to live ends (kubectl#1482).
job a 'ttlSecondsAfterFinished: 1,' 'sleep 3'
patience 20 kubectl wait --for=condition=failed job/a --timeout=20s
kubectl get jobs -o name
