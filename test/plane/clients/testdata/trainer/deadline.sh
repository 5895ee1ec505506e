# A TrainJob is active for too long.
runtime a 'sleep 100'
trainjob a 'activeDeadlineSeconds: 5,'
until_value job/a-node-0 .status.ready 1
until_true trainjob/a Failed
kubectl get trainjob a -o jsonpath='{.status.conditions[?(@.type=="Failed")].reason}{"\n"}'
kubectl wait --for=delete jobset/a --timeout=60s
until_gone pods
