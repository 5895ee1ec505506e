# With the strategy accurate, messages that are worked at do not wait any more: the same two are two further ones.
messages 2
scaledjob 'maxReplicaCount: 4, scalingStrategy: {strategy: accurate},' "$(work)"
poll
running 2
poll
running 4
poll
running 4
finish
ended 4 Complete
