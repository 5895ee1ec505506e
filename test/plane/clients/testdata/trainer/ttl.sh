# The time to live of a JobSet ends; the TrainJob stays complete (trainer#2981).
runtime a 'sleep 1' 'ttlSecondsAfterFinished: 2,'
trainjob a ''
until_true trainjob/a Complete
kubectl wait --for=delete jobset/a --timeout=60s
sleep 5
kubectl get jobsets -o name
