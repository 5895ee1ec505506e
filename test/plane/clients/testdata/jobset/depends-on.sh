# One group starts when the other is complete, a third when the second is ready.
jobset a <<Y
replicatedJobs:
$(group first 1 1 'sleep 1')
$(group second 1 1 'sleep 4' '' 'dependsOn: [{name: first, status: Complete}],')
$(group third 1 1 'sleep 1' '' 'dependsOn: [{name: second, status: Ready}],')
Y
until_true jobset/a Completed
