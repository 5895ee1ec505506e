# Somebody deletes a JobSet in the foreground while the pods of its Jobs run. When it is gone, so are its Jobs and their pods.
jobset a <<Y
replicatedJobs:
$(group workers 2 2 'sleep 1000')
Y
until_value job/a-workers-0 .status.ready 2
until_value job/a-workers-1 .status.ready 2
kubectl delete jobset a --cascade=foreground
kubectl get jobs,pods -o name
