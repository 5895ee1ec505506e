# A Job with a higher priority stops one that runs, ten times.
quota 2 'preemption: {withinClusterQueue: LowerPriority},'
job low '' 'completions: 2, parallelism: 2,' 'sleep 300'
for i in $(seq 10); do
	until_value job/low .status.ready 2 >/dev/null
	job high$i 'kueue.x-k8s.io/priority-class: high,' 'completions: 2, parallelism: 2,' 'sleep 1'
	until_true job/high$i Complete >/dev/null
done
measure preemption 'workload job-low-~: Evicted=True' 'workload job-high'
