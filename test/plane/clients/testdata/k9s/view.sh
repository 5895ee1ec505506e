# A Job that is done and one that has failed: in the list, described, with its pods, and with what these said.
job done 'completions: 2, parallelism: 2,' 'echo well done'
job lost '' 'echo no use; exit 3'
until_true job/done Complete
until_true job/lost Failed
until_prints 5 events
k9s_shows jobs
see '│ done .* 2/2'
see '│ lost .* 0/1'

press /done enter
miss '│ lost '
press d
see 'Describe\(.*\)'
for line in 'Start Time' 'Completed At' 'Duration' 'Pods Statuses' 'Normal +Completed'; do see "│ +$line[^│]*"; done
press esc
see 'jobs\(.*\)\[1\]'
press l
see 'Logs\(.*\)'
see 'done-[^│]* well done'
press esc
see 'jobs\(.*\)\[1\]'

press /lost enter
miss '│ done '
see '│ lost .* 0/1'
press d
see 'Describe\(.*\)'
for line in 'Pods Statuses' 'Warning +BackoffLimitExceeded'; do see "│ +$line[^│]*"; done
press esc
see 'jobs\(.*\)\[1\]'
press enter
see 'pods\(.*\)\[1\]'
see '│ lost-.* Error'
press l
see 'Logs\(.*\)'
see 'no use'
quit
