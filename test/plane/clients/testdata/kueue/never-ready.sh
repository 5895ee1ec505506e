# The pods of a Job do not become ready. It is stopped, tried once more, and deactivated.
quota 1
job a '' '' 'sleep 1'
printf '{apiVersion: batch/v1, kind: Job, metadata: {name: b, labels: {kueue.x-k8s.io/queue-name: q}}, spec: {suspend: true, %s}}' \
	"$(pod 'sleep 1' | sed 's/{name: main,/& resources: {requests: {cpu: 1}},/; s/restartPolicy/nodeSelector: {no: where}, &/')" | create
until_true job/a Complete
workload=$(kubectl get workloads -o name | grep job-b-)
until_value "$workload" .spec.active false
until_true "$workload" Evicted
until_value job/b .spec.suspend true
measure 'eviction, pods not ready' 'workload job-b-~: Evicted=True (PodsReadyTimeout' 'workload job-b-~: Requeued=False (PodsReadyTimeout'
