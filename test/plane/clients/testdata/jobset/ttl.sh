# A finished JobSet goes by itself.
jobset a <<Y
ttlSecondsAfterFinished: 2
replicatedJobs:
$(group workers 2 1 'sleep 1')
Y
until_true jobset/a Completed
kubectl wait --for=delete jobset/a --timeout=60s
until_gone jobs,pods
