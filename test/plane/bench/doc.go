// Package bench measures Job controllers side by side: the built-in one, the
// executor with the policy engine in a second process, the executor with the
// engine embedded, and a floor: a client that makes the fewest possible calls. Each
// runs the same scenarios on the same control plane, in turn.
//
// # Fairness
//
// One etcd and one API server serve the contenders of a scenario, one after the
// other, with the same binaries and flags; nothing else runs on that control
// plane. A control plane is used once before the first contender comes, and
// each scenario begins with a different contender. Each run has a namespace of its
// own, processes that were just started, and one unmeasured Job to warm up; what
// a run leaves behind is deleted before the next one. Contenders have the same
// kind of credentials, and their requests have the same priority. They work on
// the same number of Jobs at once, under the same limits of requests. After more than
// 20,000 pods, or an error, the next contender gets a new control plane.
//
// The simulated kubelet and the observer run in the benchmark's own process. They do
// the same for every contender: two status writes a pod, from a bounded pool.
//
// # What is measured
//
// API calls come from the API server's audit log, by user. CPU time and memory of
// the contender's processes come from /proc (Linux), and so does the CPU time of the
// processes that serve it. The observer and the kubelet take times when their own
// watches deliver an event. Decisions and bytes come from the contender's metrics.
//
// Every run ends with a comparison of each Job's status, of all its pods and of
// their finalizers with what the simulated kubelet did. A contender that is fast
// and wrong fails.
package bench
