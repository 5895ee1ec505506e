# The quota of a Job that fails, and of one that is deleted, goes to the next one.
quota 1
job a '' '' 'sleep 1; exit 1'
until_true job/a Failed
job b '' '' 'sleep 100'
until_value job/b .status.ready 1
job c '' '' 'sleep 1'
kubectl delete job b --cascade=background
until_true job/c Complete
