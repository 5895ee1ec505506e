# Somebody deletes the JobSet of a TrainJob that has failed: Trainer makes it again (trainer#3737).
runtime a 'sleep 1; exit 1'
trainjob a ''
until_true trainjob/a Failed
kubectl delete jobset a
kubectl wait --for=create jobset/a --timeout=20s
until_true jobset/a Failed
until_true trainjob/a Failed
