# The dialog deletes a Job in the foreground: its pods go before it.
BACKOFF=6 job a 'completions: 2, parallelism: 2,' 'sleep 100'
until_value job/a .status.ready 2
k9s_shows jobs
see '│ a .* 0/2'
press ctrl-d
see 'Propagation: +[A-Z][a-z]+'
press backtab backtab enter down enter # from Cancel back to the list of propagations
see 'Propagation: +Foreground'
press tab tab tab enter # Force, Cancel, OK
see 'jobs\(.*\)\[0\]'
kubectl get pods -o name
quit
