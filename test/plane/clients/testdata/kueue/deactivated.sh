# Somebody deactivates the workload of a running Job, and activates it again.
quota 2
job a '' 'completions: 2, parallelism: 2,' 'sleep 4'
until_value job/a .status.ready 2
workload=$(kubectl get workloads -o name)
kubectl patch "$workload" --type=merge -p '{"spec":{"active":false}}' >/dev/null
until_true "$workload" QuotaReserved=false
until_value job/a .spec.suspend true
kubectl wait --for=delete pod --all --timeout=60s >/dev/null
kubectl patch "$workload" --type=merge -p '{"spec":{"active":true}}' >/dev/null
until_true job/a Complete
