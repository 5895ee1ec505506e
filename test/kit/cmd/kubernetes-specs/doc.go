// Command kubernetes-specs runs Kubernetes' own end-to-end specs of Jobs, CronJobs and times to live against a
// cluster, and prints what became of each.
//
//	kubernetes-specs --kubeconfig FILE [--all] [--focus REGEXP] [--parallel N] [--feature-gates GATE,…]
//	kubernetes-specs --list
//	kubernetes-specs --images
//
// The cluster needs a node that runs containers, an API server with --allow-privileged=true, and the images that
// --images prints. Exit status: 0 when every spec that ran has passed and none skipped itself, 1 otherwise.
package main
