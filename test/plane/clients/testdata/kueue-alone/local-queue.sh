# Somebody holds the local queue: what runs goes on, what waits stays. Then it is drained: what runs is stopped. At last it is open again.
quota 1
policy() { kubectl patch localqueue q --type=merge -p '{"spec":{"stopPolicy":"'"$1"'"}}' >/dev/null; }
job a '' '' 'sleep 3'
until_value job/a .status.ready 1
policy Hold
job b '' '' 'sleep 8'
until_true job/a Complete
kubectl get job b -o jsonpath='held: {.spec.suspend}{"\n"}'
policy None
until_value job/b .status.ready 1
policy HoldAndDrain
until_true "$(kubectl get workloads -o name | grep job-b-)" Admitted=False
until_true job/b Suspended
policy None
until_true job/b Complete
