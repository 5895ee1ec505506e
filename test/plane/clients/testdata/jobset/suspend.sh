# A JobSet that is created suspended is resumed, suspended and resumed again.
jobset a <<Y
suspend: true
replicatedJobs:
$(group workers 2 1 'sleep 6')
Y
until_true job/a-workers-0 Suspended
until_true job/a-workers-1 Suspended
kubectl patch jobset a --type=merge -p '{"spec":{"suspend":false}}'
until_value job/a-workers-0 .status.ready 1
until_value job/a-workers-1 .status.ready 1
kubectl patch jobset a --type=merge -p '{"spec":{"suspend":true}}'
until_true jobset/a Suspended
until_true job/a-workers-0 Suspended
until_true job/a-workers-1 Suspended
kubectl wait --for=delete pod --all --timeout=60s >/dev/null
kubectl patch jobset a --type=merge -p '{"spec":{"suspend":false}}'
until_true jobset/a Completed
