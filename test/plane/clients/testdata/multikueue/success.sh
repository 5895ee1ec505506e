# A Job runs on the worker. What becomes of it is seen here, and the next one gets its quota.
queues 2
job a '' 'completions: 3, parallelism: 2, completionMode: Indexed,' 'sleep 3'
until_value job/a .status.ready 2
on_worker until_value job/a .status.ready 2
job b '' 'completions: 2, parallelism: 2,' 'sleep 1'
until_true job/a Complete
mine job/a
until_true job/b Complete
on_worker kubectl wait --for=delete job/a job/b --timeout=60s >/dev/null
until_value "clusterqueue/$queue" .status.reservingWorkloads 0
on_worker until_value "clusterqueue/$queue" .status.reservingWorkloads 0
