# The ScaledJob changes while a Job of it runs: with the strategy gradual it runs to its end.
messages 1
scaledjob 'rollout: {strategy: gradual},' "$(work)"
poll
running 1
scaledjob 'rollout: {strategy: gradual},' "$(work)" 'activeDeadlineSeconds: 600,'
messages 2
poll
running 2
finish
ended 2 Complete
