# A Job with a higher priority stops one that runs, which goes on later.
quota 2 'preemption: {withinClusterQueue: LowerPriority},'
job low '' 'completions: 2, parallelism: 2,' 'sleep 20'
until_value job/low .status.ready 2
job high 'kueue.x-k8s.io/priority-class: high,' 'completions: 2, parallelism: 2,' 'sleep 2'
until_true job/high Complete
until_true job/low Complete
