# The dialog deletes a Job without its pods: they run on, and are let go.
job a 'completions: 2, parallelism: 2,' 'sleep 100'
until_value job/a .status.ready 2
k9s_shows jobs
see '│ a .* 0/2'
press ctrl-d
see 'Propagation: +[A-Z][a-z]+'
press backtab backtab enter down down enter
see 'Propagation: +Orphan'
press tab tab tab enter
see 'jobs\(.*\)\[0\]'
pods_let_go
kubectl get pods -o name
quit
