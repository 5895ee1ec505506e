# Three Jobs, one done, one running and one suspended, are marked and deleted together. The first time the dialog is left by Cancel.
job a '' 'true'
job b '' 'sleep 100'
job c 'suspend: true,' 'true'
until_true job/a Complete
until_value job/b .status.ready 1
until_true job/c Suspended
k9s_shows jobs
see 'jobs\(.*\)\[3\]'
press N
see 'NAME↑'
press space down space down space
press ctrl-d
see 'Delete .*\?'
press enter
miss 'Propagation'
kubectl get jobs -o name
press ctrl-d
see 'Delete .*\?'
press tab enter
see 'jobs\(.*\)\[0\]'
until_gone pods
quit
