# A Job fails, and with it all.
jobset a <<Y
replicatedJobs:
$(group leader 1 1 'sleep 2; exit 1')
$(group workers 2 1 'sleep 100')
Y
until_true jobset/a Failed
until_inactive
