# The worker is out of reach while it runs a Job to its end. Once it is back, that is seen here, and the next Job runs there.
queues 1
job a '' 'completions: 2,' 'sleep 8'
until_value job/a .status.ready 1
address https://127.0.0.1:1
until_true "multikueuecluster/$queue" Active=False
on_worker until_true job/a Complete
job b '' '' 'sleep 1'
echo "here meanwhile: succeeded $(kubectl get job a -o jsonpath='{.status.succeeded}'), complete $(kubectl get job a -o jsonpath='{.status.completionTime}')"
address
until_true job/a Complete
mine job/a
until_true job/b Complete
on_worker kubectl wait --for=delete job/a job/b --timeout=60s >/dev/null
until_value "clusterqueue/$queue" .status.reservingWorkloads 0
