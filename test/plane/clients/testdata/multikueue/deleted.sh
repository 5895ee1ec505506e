# Somebody deletes a Job here that runs on the worker: it goes there, too, and the next one gets its quota.
queues 1
job a '' '' 'sleep 300'
until_value job/a .status.ready 1
job b '' '' 'sleep 1'
kubectl delete job a
until_true job/b Complete
on_worker kubectl wait --for=delete job/a job/b --timeout=60s >/dev/null
until_value "clusterqueue/$queue" .status.reservingWorkloads 0
