# The template changes twice while the JobSet is suspended.
jobset a <<Y
suspend: true
replicatedJobs:
$(group workers 1 1 'sleep 1')
Y
until_true job/a-workers-0 Suspended
for value in first second; do
	kubectl patch jobset a --type=json -p "[{\"op\": \"add\", \"path\": \"/spec/replicatedJobs/0/template/spec/template/metadata/annotations\", \"value\": {\"changed\": \"$value\"}}]"
done
kubectl patch jobset a --type=merge -p '{"spec":{"suspend":false}}'
until_true jobset/a Completed
kubectl get pods -o jsonpath='{.items[*].metadata.annotations.changed}{"\n"}'
