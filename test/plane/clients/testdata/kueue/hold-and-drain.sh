# Somebody drains the queue: the running Job is stopped. When the queue is open again, the Job runs again.
quota 1
drain() { kubectl patch clusterqueue "$queue" --type=merge -p '{"spec":{"stopPolicy":"'"$1"'"}}' >/dev/null; }
job a '' '' 'sleep 8'
until_value job/a .status.ready 1
drain HoldAndDrain
until_true "$(kubectl get workloads -o name)" Admitted=False
until_true job/a Suspended
drain None
until_true job/a Complete
