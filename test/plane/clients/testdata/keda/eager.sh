# With the strategy eager, one message is enough to use all of what the maximum leaves, one Job a poll.
messages 1
scaledjob 'maxReplicaCount: 3, scalingStrategy: {strategy: eager},' "$(work)"
for count in 1 2 3 3; do
	poll
	running $count
done
finish
ended 3 Complete
