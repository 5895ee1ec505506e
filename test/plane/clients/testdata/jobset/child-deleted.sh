# Somebody deletes a Job in the foreground while its pods run. It is created again.
jobset a <<Y
replicatedJobs:
$(BACKOFF=6 group workers 1 2 'sleep 5')
Y
until_value job/a-workers-0 .status.ready 2
kubectl delete job a-workers-0 --cascade=foreground
until_true jobset/a Completed
