package exhaustive

// Scopes are the Jobs that are explored, with what may happen to each. Those with fewer states come first.
var Scopes = []Scope{
	// One executor, which creates the pods.
	{Name: "parallelism 2 without completions", Pods: 3, Executors: 1, Parallelism: 2, BackoffLimit: 1, Faults: Faults{Losses: 1, Failures: 1}},
	{
		Name: "every fault", Pods: 2, Executors: 1, Parallelism: 1, Completions: 1, BackoffLimit: 1,
		Faults: Faults{Losses: 1, Crashes: 1, Deletions: 1, Failures: 1}, LateJobs: true,
	},
	{
		Name: "replaced when failed", Pods: 2, Executors: 1, Parallelism: 1, Completions: 1, BackoffLimit: 1, ReplaceFailed: true,
		Faults: Faults{Losses: 1, Crashes: 1, Deletions: 1, Failures: 1},
	},
	{Name: "two lost answers", Pods: 2, Executors: 1, Parallelism: 2, Completions: 2, Faults: Faults{Losses: 2, Failures: 1}},
	{Name: "the Job is deleted", Pods: 2, Executors: 1, Parallelism: 2, Completions: 2, Faults: Faults{Losses: 1, Failures: 1, JobDeletion: true}},
	{Name: "suspended and resumed", Pods: 3, Executors: 1, Parallelism: 1, Completions: 1, Faults: Faults{Losses: 1, Crashes: 1, Toggles: 2}},
	{Name: "Indexed", Pods: 3, Executors: 1, Parallelism: 2, Completions: 2, BackoffLimit: 1, Indexed: true, Faults: Faults{Losses: 1, Failures: 1}},
	{Name: "Indexed with a success policy", Pods: 3, Executors: 1, Parallelism: 3, Completions: 3, Indexed: true, SuccessPolicy: true, Faults: Faults{Losses: 1}},
	{Name: "pods become ready", Pods: 3, Executors: 1, Parallelism: 2, Completions: 2, BackoffLimit: 1, Starts: true, Faults: Faults{Failures: 1}},
	{Name: "routine statuses wait", Pods: 2, Executors: 1, Parallelism: 2, Completions: 2, Waits: true, Faults: Faults{Losses: 1, Failures: 1}},
	// Two executors that both write.
	{Name: "two executors, one pod, suspended", Pods: 1, Executors: 2, Parallelism: 1, Completions: 2, BackoffLimit: 1, Suspended: true, Running: true, Faults: Faults{Failures: 1}},
	{
		Name: "two executors, one pod, every fault", Pods: 1, Executors: 2, Parallelism: 1, Completions: 1, Running: true,
		Faults: Faults{Losses: 1, Crashes: 1, Failures: 1, Deletions: 1}, LateJobs: true,
	},
	{Name: "two executors, suspended and resumed", Pods: 1, Executors: 2, Parallelism: 1, Completions: 1, Running: true, Faults: Faults{Toggles: 2}},
	{Name: "two executors, the Job is deleted", Pods: 2, Executors: 2, Parallelism: 2, Completions: 2, Running: true, Faults: Faults{JobDeletion: true}},
	{Name: "two executors, Indexed", Pods: 2, Executors: 2, Parallelism: 2, Completions: 2, Indexed: true, Running: true},
	{Name: "two executors, Indexed with a success policy", Pods: 2, Executors: 2, Parallelism: 2, Completions: 2, Indexed: true, SuccessPolicy: true, Running: true},
	{Name: "two executors create", Pods: 2, Executors: 2, Parallelism: 1, Completions: 1, BackoffLimit: 1},
	{Name: "two executors, a failure", Pods: 2, Executors: 2, Parallelism: 2, Completions: 2, BackoffLimit: 1, Running: true, Faults: Faults{Failures: 1}},
	{Name: "two executors, routine statuses wait", Pods: 2, Executors: 2, Parallelism: 2, Completions: 2, Waits: true, Running: true},
	{Name: "two executors, a restart", Pods: 2, Executors: 2, Parallelism: 2, Completions: 2, Running: true, Faults: Faults{Crashes: 1}, LateJobs: true},
	{Name: "two executors, a pod is deleted", Pods: 2, Executors: 2, Parallelism: 2, Completions: 2, ReplaceFailed: true, Running: true, Faults: Faults{Deletions: 1}},
	{Name: "two executors, three pods", Pods: 3, Executors: 2, Parallelism: 3, Completions: 3, Running: true},
}
