# The ScaledJob changes while its Jobs run: they are deleted in the foreground. None of them may count as failed.
messages 5
scaledjob 'rollout: {propagationPolicy: foreground},' "$(work)"
poll
running 5
scaledjob 'rollout: {propagationPolicy: foreground},' "$(work)" 'activeDeadlineSeconds: 600,'
until_gone jobs,pods
poll
running 5
finish
ended 5 Complete
