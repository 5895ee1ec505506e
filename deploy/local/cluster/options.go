package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Names of the components. They name log files, and they are the keys of
// [Options.ExtraArgs] and [Options.ExtraEnv].
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Node              = "node"
	Engine            = "jobpolicy-engine"
	Executor          = "jobpolicy-executor"
)

// Names of the components that stand for Node where containers are real.
const (
	Namespaces = "namespaces"
	Containerd = "containerd"
	Registry   = "image-registry"
	Kubelet    = "kubelet"
	KubeProxy  = "kube-proxy"
	CoreDNS    = "coredns"
)

// kubernetesServers are the components that [Options.KubernetesDir] replaces.
var kubernetesServers = []string{APIServer, ControllerManager, Scheduler}

var (
	controlPlane   = []string{Etcd, APIServer, ControllerManager, Scheduler, Engine, Executor}
	nodeComponents = map[NodeKind][]string{
		Processes:  {Node},
		Containers: {Namespaces, Containerd, Registry, Kubelet, KubeProxy, CoreDNS},
	}
)

// componentNames are the components that there may be.
func (o Options) componentNames() []string {
	return slices.Concat(controlPlane, nodeComponents[o.Node])
}

// Names of the executables in [Options.BinDir].
const (
	LocalBinary    = "jobpolicy-local"
	EngineBinary   = "jobpolicy-engine"
	ExecutorBinary = "jobpolicy-executor"
)

// NodeKind says what runs the pods.
type NodeKind string

const (
	// Processes runs containers as processes of this machine, as the user who
	// starts it, and isolates nothing.
	Processes NodeKind = "processes"
	// Containers runs containers: containerd, kubelet and kube-proxy as in any
	// cluster. It needs Linux, root, and the programs in Options.NodeBinDir.
	Containers NodeKind = "containers"
)

// DefaultNodeName is the name of the only Node object.
const DefaultNodeName = "local"

// defaultStartTimeout bounds the wait for one component. Each takes a few
// seconds on an idle machine; a loaded one may need many times that.
const defaultStartTimeout = 4 * time.Minute

// Options say what to start. Only StateDir and BinDir are required.
type Options struct {
	// StateDir is the directory for everything that the control plane writes.
	// It is created; an existing one must be empty or stem from an earlier run.
	StateDir string
	// Keep leaves the state directory in place at Stop and continues from what
	// an earlier run with Keep left there. Without Keep, Stop deletes it, and
	// Start refuses a directory that was kept.
	Keep bool
	// BinDir is the directory of the three executables jobpolicy-local,
	// jobpolicy-engine and jobpolicy-executor.
	BinDir string
	// LocalPath, EnginePath and ExecutorPath name single executables instead.
	LocalPath, EnginePath, ExecutorPath string
	// KubernetesDir is the directory of kube-apiserver, kube-controller-manager and
	// kube-scheduler of another version; empty means those in jobpolicy-local. See
	// [Cluster.SetKubernetesDir].
	KubernetesDir string
	// NodeName names the Node object; empty means DefaultNodeName.
	NodeName string
	// Node says what runs the pods; empty means Processes.
	Node NodeKind
	// NodeBinDir is the directory of the programs that Containers needs; empty
	// means the directory "node" beside jobpolicy-local.
	NodeBinDir string
	// CrashBackoff is the delay before a container's second restart; zero means
	// ten seconds, as everywhere.
	CrashBackoff time.Duration
	// Images are files that containerd loads before anything runs, besides those
	// in NodeBinDir; see [Cluster.LoadImage]. Only Containers reads images.
	Images []string

	// WithoutEngine leaves the policy engine out. An executor that is started
	// nevertheless decides in its own process.
	WithoutEngine bool
	// WithoutExecutor leaves the executor out: nobody reconciles Jobs, unless
	// ControllerManagerControllers turns the built-in controller on.
	WithoutExecutor bool
	// WithoutNode leaves the node out: pods are never scheduled.
	WithoutNode bool
	// WithoutScheduler leaves the scheduler out: pods stay pending.
	WithoutScheduler bool

	// ControllerManagerControllers is the value of the controller manager's
	// --controllers flag; empty means DefaultControllers, or with Containers or
	// KubernetesDir DefaultNodeControllers.
	ControllerManagerControllers string
	// ExtraArgs are appended to the arguments of the component that is the key.
	// A flag given twice takes its last value, unless it collects values.
	ExtraArgs map[string][]string
	// ExtraEnv adds KEY=VALUE lines to the environment of the component that is
	// the key. Every component inherits the environment of this process.
	ExtraEnv map[string][]string

	// Progress is called for every step of starting and stopping, never from
	// two goroutines at once; nil means no report.
	Progress func(Progress)
	// StartTimeout bounds the wait for each component; zero means four minutes.
	StartTimeout time.Duration
}

// complete fills in the defaults and reports every unusable option.
func (o Options) complete() (Options, error) {
	o.LocalPath = o.binary(o.LocalPath, LocalBinary)
	o.EnginePath = o.binary(o.EnginePath, EngineBinary)
	o.ExecutorPath = o.binary(o.ExecutorPath, ExecutorBinary)
	if o.NodeName == "" {
		o.NodeName = DefaultNodeName
	}
	if o.Node == "" {
		o.Node = Processes
	}
	if o.NodeBinDir == "" {
		o.NodeBinDir = filepath.Join(filepath.Dir(o.LocalPath), "node")
	}
	// A component runs in a directory of its own.
	for _, path := range []*string{&o.LocalPath, &o.EnginePath, &o.ExecutorPath, &o.NodeBinDir, &o.KubernetesDir} {
		if *path == "" {
			continue // Only KubernetesDir may be empty.
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return o, err
		}
		*path = absolute
	}
	if o.ControllerManagerControllers == "" {
		o.ControllerManagerControllers = o.defaultControllers()
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = defaultStartTimeout
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	return o, o.validate()
}

func (o Options) binary(path, name string) string {
	if path != "" {
		return path
	}
	return filepath.Join(o.BinDir, name)
}

func (o Options) validate() error {
	var errs []error
	if o.StateDir == "" {
		errs = append(errs, errors.New("options: StateDir must be set"))
	}
	for _, problem := range validation.IsDNS1123Subdomain(o.NodeName) {
		errs = append(errs, fmt.Errorf("options: NodeName %q: %s", o.NodeName, problem))
	}
	for _, path := range o.binaries() {
		if _, err := os.Stat(path); err != nil {
			errs = append(errs, fmt.Errorf("executable is missing (deploy/local/build.sh builds it): %w", err))
		}
	}
	for _, byComponent := range []map[string][]string{o.ExtraArgs, o.ExtraEnv} {
		for name := range byComponent {
			if !slices.Contains(o.componentNames(), name) {
				errs = append(errs, fmt.Errorf("options: no component is called %q; there are %q", name, o.componentNames()))
			}
		}
	}
	switch {
	case o.Node != Processes && o.Node != Containers:
		errs = append(errs, fmt.Errorf("options: Node %q: want %s or %s", o.Node, Processes, Containers))
	case o.Node == Containers && o.WithoutNode:
		errs = append(errs, fmt.Errorf("options: Node %s and WithoutNode exclude each other", Containers))
	case o.Node == Containers:
		errs = append(errs, o.checkNode())
	}
	return errors.Join(errs...)
}

// binaries are the executables that these options need.
func (o Options) binaries() []string {
	paths := append([]string{o.LocalPath}, kubernetesPrograms(o.KubernetesDir)...)
	if !o.WithoutEngine {
		paths = append(paths, o.EnginePath)
	}
	if !o.WithoutExecutor {
		paths = append(paths, o.ExecutorPath)
	}
	return paths
}

// kubernetesPrograms are the programs in an [Options.KubernetesDir].
func kubernetesPrograms(dir string) []string {
	if dir == "" {
		return nil
	}
	var paths []string
	for _, name := range kubernetesServers {
		paths = append(paths, filepath.Join(dir, name))
	}
	return paths
}

// Progress is one step of starting or stopping a component.
type Progress struct {
	// Component is one of the names above, or "cluster" for the steps that
	// concern the control plane as a whole.
	Component string
	// State is the step that is reported.
	State State
	// Elapsed is the time since the component's start or stop began.
	Elapsed time.Duration
	// Detail says why the component is not ready yet, or is empty.
	Detail string
}

// State is a step in starting or stopping a component.
type State string

// The states of [Progress]. Waiting is repeated while a component is not ready.
const (
	Starting State = "starting"
	Waiting  State = "waiting"
	Ready    State = "ready"
	Stopping State = "stopping"
	Stopped  State = "stopped"
	// Killed: the component did not end in time when it was stopped.
	Killed State = "killed"
)

// whole is the Component of steps that concern the control plane as a whole.
const whole = "cluster"

// String renders the step as one line without a line break.
func (p Progress) String() string {
	after := p.Elapsed.Round(100 * time.Millisecond)
	switch p.State {
	case Waiting:
		return fmt.Sprintf("%-24s not ready after %s: %s", p.Component, after, p.Detail)
	case Starting, Stopping:
		return fmt.Sprintf("%-24s %s", p.Component, p.State)
	}
	return fmt.Sprintf("%-24s %s after %s", p.Component, p.State, after)
}
