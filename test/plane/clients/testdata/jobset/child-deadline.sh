# A Job is active for too long.
jobset a <<Y
replicatedJobs:
$(group leader 1 1 'sleep 100' 'activeDeadlineSeconds: 3,')
$(group workers 1 1 'sleep 100')
Y
until_true jobset/a Failed
until_inactive
