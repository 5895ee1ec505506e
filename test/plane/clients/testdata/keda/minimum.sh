# A Job runs also without a message, and is replaced when it has ended. Then the ScaledJob is deleted.
messages 0
scaledjob 'minReplicaCount: 1, maxReplicaCount: 2,' "$(work)"
poll
running 1
poll
running 1
let_one_end
ended 1 Complete
poll
running 1
messages 1
poll
running 2
messages 0
poll
running 2
kubectl delete scaledjob a
until_gone jobs,pods
