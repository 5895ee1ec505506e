// Package cluster starts a whole Kubernetes control plane on one machine, as
// child processes of the calling program: etcd, kube-apiserver,
// kube-controller-manager without the controllers that this project replaces,
// kube-scheduler, a node that runs containers as host processes, the policy
// engine, and the executor.
//
//	c, err := cluster.Start(ctx, cluster.Options{StateDir: dir, BinDir: "bin"})
//	if err != nil { … }
//	defer c.Stop(context.Background())
//	client := kubernetes.NewForConfigOrDie(c.RESTConfig())
//
// Everything listens on 127.0.0.1 behind TLS with client certificates (the
// engine's and executor's health and metrics ports excepted), on ports that
// were free at the start. Several control planes run side by side, each with
// its own state directory.
//
// Weighed against envtest, which has neither a scheduler nor a controller manager,
// kwokctl, whose components are daemons and whose pods run nothing, and kind, which needs
// a container engine.
//
// # Processes
//
// Each component is a child process with a log file of its own. None survives
// the caller, not even one that is killed (on Linux). A component that ends
// without having been told to is never restarted in silence: [Cluster.Failed]
// is closed, and [Cluster.Err] names the component and shows the end of its log.
//
// A test may stop, kill, pause and start single components; see
// [Cluster.StopComponent], [Cluster.Kill], [Cluster.Signal] and
// [Cluster.StartComponent]. Such an end is not a failure.
//
// # State
//
// The state directory holds etcd's data, keys, logs, kubeconfig files and the
// node's files. Stop deletes it, unless Options.Keep asks for it to stay; the
// next Start with Keep then continues with the same objects, keys and, where
// they are still free, ports.
//
// etcd runs without fsync. The data survive any end of any process, which is
// all that is promised here; a crash of the operating system may lose them.
// In return each write to the API server costs no wait for the disk.
package cluster
