# One Job of a JobSet succeeds, then another one fails, and all begin again. Kueue has given back the quota of the first one for good:
# a Job that comes later runs beside both, three pods with a quota of two (kueue#14609).
group() { printf '{name: %s, template: {spec: {backoffLimit: 0, %s}}}' "$1" "$(pod "$2" | sed 's/{name: main,/& resources: {requests: {cpu: 1}},/')"; }
printf '{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: a, labels: {kueue.x-k8s.io/queue-name: q}}, spec: {suspend: true, failurePolicy: {maxRestarts: 1}, replicatedJobs: [%s, %s]}}' \
	"$(group fast 'test $ATTEMPT = 0 && sleep 1 || sleep 100')" "$(group slow 'test $ATTEMPT = 0 && sleep 5 && exit 1; sleep 100')" | create
until_true jobset/a Suspended
until_true job/a-fast-0 Suspended
until_true job/a-slow-0 Suspended
quota 2
until_value jobset/a .status.restarts 1
# Until the Jobs of the next try have taken the place of those before: "wait" fails if the one that it has found is deleted.
until_prints 'a-fast-0 a-slow-0 ' kubectl get jobs -l jobset.sigs.k8s.io/restart-attempt=1 -o 'jsonpath={range .items[*]}{.metadata.name} {end}'
until_value job/a-fast-0 .status.ready 1
until_value job/a-slow-0 .status.ready 1
job b '' '' 'sleep 2'
until_value job/b .status.ready 1
kubectl get jobs -o jsonpath='active pods of each Job: {.items[*].status.active}{"\n"}'
kubectl delete jobset a
until_true job/b Complete
