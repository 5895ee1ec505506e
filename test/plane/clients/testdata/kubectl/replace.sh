# A running Job is replaced by another one of the same name.
job a '' 'sleep 100'
until_value job/a .status.ready 1
manifest a '' 'sleep 1' | kubectl replace --force -f -
until_true job/a Complete
until [ "$(kubectl get pods -o name | wc -l)" = 1 ]; do sleep 0.3; done
