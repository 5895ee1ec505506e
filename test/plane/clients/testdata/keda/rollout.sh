# The ScaledJob changes while its Jobs run: they are deleted in the background, and others take their place.
messages 2
scaledjob '' "$(work)"
poll
running 2
scaledjob '' "$(work)" 'activeDeadlineSeconds: 600,'
until_gone jobs,pods
poll
running 2
finish
ended 2 Complete
