// Command training runs the custom resource Training: several groups of pods that
// belong together, such as one leader and many workers. It is an example of a
// Kubernetes controller of one's own that lets the engine decide, over gRPC.
//
//	kubectl apply -f crd.yaml
//	training --kubeconfig kubeconfig --engine dns:///localhost:8443 --certificates tls
//
// A group has the spec of an Indexed Job, and package podjob asks the engine about it as
// about a Job. The Training adds two policies. If a group has failed, the whole Training
// starts again with new pods, or fails. If the groups that matter have succeeded, so has
// the Training, and the pods of the others are deleted.
//
//	kind: Training
//	spec:
//	  groups:
//	  - {name: leader, job: {completions: 1, parallelism: 1, template: …}}
//	  - {name: workers, job: {completions: 4, parallelism: 4, podFailurePolicy: …, template: …}}
//	  failurePolicy: {maxRestarts: 3, failReasons: [PodFailurePolicy]}
//	  successPolicy: {groups: [leader]}
//
// The program reads everything anew each time, so it may be killed. Only one may run.
package main
