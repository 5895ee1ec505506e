# With the strategy custom, a message less counts, and half of the Jobs that run.
messages 5
scaledjob 'maxReplicaCount: 9, scalingStrategy: {strategy: custom, customScalingQueueLengthDeduction: 1, customScalingRunningJobPercentage: "0.5"},' "$(work)"
for count in 4 6 7 8 8; do
	poll
	running $count
done
finish
ended 8 Complete
