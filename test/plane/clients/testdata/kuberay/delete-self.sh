# The RayJob deletes itself after its end, and the submitter's Job goes with it.
rayjob 'deletionStrategy: {deletionRules: [{policy: DeleteSelf, condition: {jobStatus: SUCCEEDED, ttlSeconds: 5}}]},' "$(ray SUCCEEDED)"
until_true job/a Complete
kubectl wait --for=delete rayjob/a --timeout=60s
until_gone jobs,pods
