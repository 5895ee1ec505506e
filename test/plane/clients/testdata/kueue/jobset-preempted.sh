# A Job with a higher priority stops a JobSet, which goes on later.
quota 2 'preemption: {withinClusterQueue: LowerPriority},'
printf '{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: low, labels: {kueue.x-k8s.io/queue-name: q}}, spec: {suspend: true, replicatedJobs: [{name: workers, replicas: 2, template: {spec: {backoffLimit: 0, %s}}}]}}' \
	"$(pod 'sleep 20' | sed 's/{name: main,/& resources: {requests: {cpu: 1}},/')" | create
until_value job/low-workers-0 .status.ready 1
until_value job/low-workers-1 .status.ready 1
job high 'kueue.x-k8s.io/priority-class: high,' 'completions: 2, parallelism: 2,' 'sleep 2'
until_true job/high Complete
until_true jobset/low Completed
measure preemption 'workload jobset-low-~: Evicted=True' 'workload job-high-~: Admitted=True'
