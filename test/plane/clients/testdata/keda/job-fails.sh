# A Job fails: its message waits still, and gets another Job. A Job that has failed is not pending (keda#5264).
messages 1
scaledjob 'maxReplicaCount: 3, scalingStrategy: {strategy: accurate, pendingPodConditions: [Ready]},' "$(work 'exit 1')"
poll
running 1
let_one_end
ended 1 Failed
poll
running 1
finish
ended 2 Failed
