// Package specs runs Kubernetes' own end-to-end specs of Jobs, CronJobs and times to live: those of package
// k8s.io/kubernetes/test/e2e/apps, unchanged, against any cluster.
//
// The specs are compiled into the command test/kit/cmd/kubernetes-specs. This package decides which of them run
// (choose.go), runs each in a process of its own, several at a time because most of their time is waiting (run.go),
// and prints what became of each (table.go). It knows nothing of the specs but their names, so its own tests need
// neither a cluster nor the specs. Specs of others are run by it, too: test/plane/clients does with Kueue's.
package specs
