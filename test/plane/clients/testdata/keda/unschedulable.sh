# A Job whose pod fits on no node is pending also without pendingPodConditions (keda#6157).
messages 2
POD='nodeSelector: {none: here}, '
scaledjob 'maxReplicaCount: 6, scalingStrategy: {strategy: accurate},' true
poll
until_prints 'Unschedulable Unschedulable' kubectl get pods -o jsonpath='{.items[*].status.conditions[?(@.type=="PodScheduled")].reason}'
poll
poll
echo "$(jobs | wc -l) Jobs"
kubectl delete scaledjob a
until_gone jobs,pods
