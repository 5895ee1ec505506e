# Somebody pauses the ScaledJob: its Job runs to its end, and new messages wait until it goes on.
messages 1
scaledjob '' "$(work)"
poll
running 1
kubectl annotate scaledjob a autoscaling.keda.sh/paused=true
until_true scaledjob/a Paused
messages 3
let_one_end
ended 1 Complete
until_polls_anew kubectl annotate scaledjob a autoscaling.keda.sh/paused-
poll
running 3
finish
ended 4 Complete
