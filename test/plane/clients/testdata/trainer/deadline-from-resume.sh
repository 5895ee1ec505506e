# A TrainJob is created suspended, resumed, suspended and resumed again. Its deadline runs from the last time: the time before
# does not count.
runtime a 'sleep 9'
trainjob a 'suspend: true, activeDeadlineSeconds: 15,'
suspend() { kubectl patch trainjob a --type=merge -p '{"spec":{"suspend":'"$1"'}}'; }
until_true trainjob/a Suspended
until_true job/a-node-0 Suspended
suspend false
until_value job/a-node-0 .status.ready 1
sleep 7
suspend true
until_true trainjob/a Suspended
until_true job/a-node-0 Suspended
until_gone pods
suspend false
until_true trainjob/a Complete
