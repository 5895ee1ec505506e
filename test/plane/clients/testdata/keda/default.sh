# With the strategy default, messages that are worked at wait still: there are as many Jobs as messages, up to a maximum.
messages 2
scaledjob 'maxReplicaCount: 4,' "$(work)"
poll
running 2
poll
running 2
messages 3
poll
running 3
messages 9
poll
running 4
poll
running 4
finish
ended 4 Complete
