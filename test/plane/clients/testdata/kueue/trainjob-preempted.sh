# A Job with a higher priority stops a TrainJob, which goes on later.
. "$TESTDATA/trainer.sh"
quota 1 'preemption: {withinClusterQueue: LowerPriority},'
create() { sed 's/{name: node, image/{name: node, resources: {requests: {cpu: 1}}, image/; s/{name: low}/{name: low, labels: {kueue.x-k8s.io\/queue-name: q}}/' | kubectl create -f -; }
runtime low 'sleep 12'
trainjob low 'suspend: true,'
until_value job/low-node-0 .status.ready 1
job high 'kueue.x-k8s.io/priority-class: high,' '' 'sleep 2'
until_true job/high Complete
until_true trainjob/low Complete
