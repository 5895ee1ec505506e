# Two groups of Jobs end well.
jobset a <<Y
replicatedJobs:
$(group leader 1 1 'sleep 1')
$(group workers 2 2 'sleep 2')
Y
until_true jobset/a Completed
