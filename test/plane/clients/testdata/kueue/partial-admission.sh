# A Job that may run with less parallelism does.
quota 2
printf '{apiVersion: batch/v1, kind: Job, metadata: {name: a, labels: {kueue.x-k8s.io/queue-name: q}, annotations: {kueue.x-k8s.io/job-min-parallelism: "1"}}, spec: {suspend: true, completions: 4, parallelism: 4, %s}}' \
	"$(pod 'sleep 2' | sed 's/{name: main,/& resources: {requests: {cpu: 1}},/')" | create
until_value job/a .spec.parallelism 2
until_true job/a Complete
