# A resumed TrainJob runs; the column STATE still says that it is suspended (trainer#3666).
runtime a 'sleep 4'
trainjob a 'suspend: true,'
until_true trainjob/a Suspended
until_true job/a-node-0 Suspended
kubectl patch trainjob a --type=merge -p '{"spec":{"suspend":false}}'
until_value job/a-node-0 .status.ready 1
kubectl get trainjob a --no-headers | awk '{print "STATE", $2}'
until_true trainjob/a Complete
