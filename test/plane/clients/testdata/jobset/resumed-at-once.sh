# A JobSet that is created suspended is resumed before anybody has said that its Jobs are suspended.
jobset a <<Y
suspend: true
replicatedJobs:
$(group workers 2 1 'sleep 1')
Y
kubectl wait --for=create job/a-workers-0 --timeout=60s
kubectl wait --for=create job/a-workers-1 --timeout=60s
kubectl patch jobset a --type=merge -p '{"spec":{"suspend":false}}'
until_true jobset/a Completed
