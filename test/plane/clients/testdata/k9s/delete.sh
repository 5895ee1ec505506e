# The dialog deletes a Job in the background, unless it is told otherwise.
job a 'completions: 2, parallelism: 2,' 'sleep 100'
until_value job/a .status.ready 2
k9s_shows jobs
see '│ a .* 0/2'
press ctrl-d
see 'Delete jobs .*/a\?'
see 'Propagation: +[A-Z][a-z]+'
press tab enter # from Cancel to OK
see 'jobs\(.*\)\[0\]'
until_gone pods
quit
