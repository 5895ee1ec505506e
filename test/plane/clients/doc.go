// Package clients runs programs of others that create Jobs, and compares what happens
// under the built-in controllers with what happens under ours: what each client, its objects, its
// Jobs and their pods go through, and what the client prints.
//
// A client is a program (a module below programs pins it, build.sh builds it into bin/clients), what
// must be installed for it, and scenarios: shell scripts in testdata/<client>. Its definitions and
// webhooks are read from its module in the module cache. So a new client needs a module, a few lines
// of Go and its scripts.
//
// Each client has a control plane of its own, MultiKueue two. There, its scenarios run under kube-controller-manager
// with its controllers of Jobs, CronJobs and times to live, then under the executor with the remote
// engine. Package history says what of the two is compared; differences_test.go lists what may differ.
//
// Three clients are changed: jobset-with-engine, kueue-with-engine and trainer-with-engine ask the engine (testdata/adopters,
// docs/adopt.md). Their tests are in adopted_*_test.go.
//
// JobSet's and Kueue's own end-to-end specs are run under both sides, too (specs_test.go): they must pass, and nothing is recorded.
//
// docs/clients.md says what was found, and how to run the scenarios against a cluster of one's own.
package clients
