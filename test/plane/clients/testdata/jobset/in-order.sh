# One group starts after the other is ready.
jobset a <<Y
startupPolicy: {startupPolicyOrder: InOrder}
replicatedJobs:
$(group leader 1 1 'sleep 4')
$(group workers 2 1 'sleep 1')
Y
until_true jobset/a Completed
