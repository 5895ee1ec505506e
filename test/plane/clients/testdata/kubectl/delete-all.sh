# Finished, running and suspended Jobs are deleted together.
job a '' 'true'
job b '' 'sleep 100'
job c 'suspend: true,' 'true'
until_true job/a Complete
until_value job/b .status.ready 1
until_true job/c Suspended
kubectl delete jobs --all
until_gone pods
