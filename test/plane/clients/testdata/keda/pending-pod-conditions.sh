# A Job whose pods do not have a condition is pending: nobody works at its message yet (keda#7329: these Jobs count also where the maximum
# is near).
messages 3
scaledjob 'maxReplicaCount: 4, scalingStrategy: {strategy: accurate, pendingPodConditions: [example.com/Warm]},' "$(work)"
poll
running 3
poll
running 3
for pod in $(kubectl get pods -o name); do
	kubectl patch "$pod" --subresource=status -p '{"status":{"conditions":[{"type":"example.com/Warm","status":"True"}]}}' >/dev/null
done
poll
running 4
finish
ended 4 Complete
