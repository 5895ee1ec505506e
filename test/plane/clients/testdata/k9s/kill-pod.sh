# A pod of a Job is killed: it is deleted at once, without a dialog. It counts as failed, and the Job replaces it.
BACKOFF=6 job a '' 'sleep 100'
until_value job/a .status.ready 1
k9s_shows jobs
see '│ a .* 0/1'
press enter
see ' Running'
press ctrl-k
until_value job/a .status.failed 1
until_value job/a .status.ready 1
see 'pods\(.*\)\[1\]'
see ' Running'
press esc
see 'jobs\(.*\)\[1\]'
press d
see '│ +Pods Statuses[^│]*'
quit
