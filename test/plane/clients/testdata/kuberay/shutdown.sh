# The cluster goes when the Ray job has ended, the submitter's Job stays.
rayjob 'shutdownAfterJobFinishes: true, ttlSecondsAfterFinished: 2,' "$(ray SUCCEEDED)"
deployed Complete
no_cluster
kubectl get jobs -o name
