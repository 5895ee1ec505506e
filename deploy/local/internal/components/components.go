// Package components holds the control plane's upstream servers as commands of
// one binary: one download, one link, and a single file to carry around.
//
// The servers share registries that are global to a process (feature gates,
// metrics, flags), so a process constructs the command of the one server that
// it becomes, and never a second one.
package components

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client-go's metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// Names of the servers, which are also their subcommands.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
)

// commands map a server's name to the function that runs it to its end and
// returns the exit code. They read their arguments from os.Args.
var commands = map[string]func() int{
	Etcd:              runEtcd,
	APIServer:         func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
	ControllerManager: func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) },
	Scheduler:         func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
}

// Known reports whether name is one of the servers.
func Known(name string) bool {
	_, ok := commands[name]
	return ok
}

// Run turns this process into the server called name, which must be known, and
// returns its exit code. It replaces os.Args, from which upstream's commands
// take both their arguments and the name in their messages.
func Run(name string, args []string) int {
	os.Args = append([]string{name}, args...)
	return commands[name]()
}

// runEtcd returns only when etcd refuses to start or was told to end; on a
// signal etcd ends the process itself.
func runEtcd() int {
	etcdmain.Main(os.Args)
	return 0
}
