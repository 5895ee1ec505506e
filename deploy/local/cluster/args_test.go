package cluster

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"

	"jobpolicy.dev/deploy/local/internal/statedir"
)

// testLayout has the ports 20001, 20002, … in the order of the listeners' names.
func testLayout(t *testing.T, opts Options) *layout {
	t.Helper()
	opts.StateDir = filepath.Join(t.TempDir(), "state")
	opts.NodeName = DefaultNodeName
	if opts.ControllerManagerControllers == "" {
		opts.ControllerManagerControllers = DefaultControllers
	}
	dir, err := statedir.Open(opts.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	l, err := newLayout(opts, dir)
	if err != nil {
		t.Fatal(err)
	}
	listeners := []string{
		portEtcdClient, portEtcdPeer, portAPIServer, portControllerManager, portScheduler,
		portKubelet, portEngineGRPC, portEngineHTTP, portExecutorHTTP,
	}
	for i, name := range listeners {
		l.ports.ports[name] = 20001 + i
	}
	return l
}

// argsOf returns a component's arguments, with the state directory's path
// replaced by STATE.
func argsOf(t *testing.T, l *layout, name string) []string {
	t.Helper()
	comp, err := newCluster(l).component(name)
	if err != nil {
		t.Fatal(err)
	}
	var args []string
	for _, arg := range comp.commandLine() {
		args = append(args, strings.ReplaceAll(arg, l.dir.Path(), "STATE"))
	}
	return args
}

// An argumentsCase is a component's arguments under some options.
type argumentsCase struct {
	opts      Options
	component string
	want      []string
}

func checkArguments(t *testing.T, cases map[string]argumentsCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := argsOf(t, testLayout(t, tc.opts), tc.component)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
		})
	}
}

func TestArgumentsOfEngineAndExecutor(t *testing.T) {
	checkArguments(t, map[string]argumentsCase{
		"the engine asks for client certificates of its own authority": {
			component: Engine,
			want: []string{
				"--grpc-address=127.0.0.1:20007",
				"--http-address=127.0.0.1:20008",
				"--client-ca-file=STATE/pki/engine-ca.crt",
				"--tls-cert-file=STATE/pki/engine.crt",
				"--tls-private-key-file=STATE/pki/engine.key",
			},
		},
		"the executor replaces the built-in controller and asks the engine by TLS": {
			component: Executor,
			want: []string{
				"--kubeconfig=STATE/kubeconfigs/jobpolicy-executor.kubeconfig",
				"--replace-builtin",
				"--leader-elect=false",
				"--kube-api-qps=100",
				"--kube-api-burst=200",
				"--http-address=127.0.0.1:20009",
				"--engine=127.0.0.1:20007",
				"--engine-ca-file=STATE/pki/engine-ca.crt",
				"--engine-cert-file=STATE/pki/engine-client.crt",
				"--engine-key-file=STATE/pki/engine-client.key",
				"--engine-server-name=localhost",
			},
		},
		"the executor decides in its own process without an engine": {
			opts:      Options{WithoutEngine: true},
			component: Executor,
			want: []string{
				"--kubeconfig=STATE/kubeconfigs/jobpolicy-executor.kubeconfig",
				"--replace-builtin",
				"--leader-elect=false",
				"--kube-api-qps=100",
				"--kube-api-burst=200",
				"--http-address=127.0.0.1:20009",
				"--engine=embedded",
			},
		},
	})
}

func TestArgumentsOfOtherComponents(t *testing.T) {
	checkArguments(t, map[string]argumentsCase{
		"extra arguments come last, for the node too": {
			opts:      Options{ExtraArgs: map[string][]string{Node: {"--crash-backoff-base=1s"}}},
			component: Node,
			want: []string{
				"node",
				"--kubeconfig=STATE/kubeconfigs/node.kubeconfig",
				"--node-name=local",
				"--root-dir=STATE/node",
				"--address=127.0.0.1:20006",
				"--client-ca-file=STATE/pki/kubelet-ca.crt",
				"--tls-cert-file=STATE/pki/kubelet.crt",
				"--tls-private-key-file=STATE/pki/kubelet.key",
				"--crash-backoff-base=1s",
			},
		},
		"the controller manager runs the controllers that the options name": {
			opts:      Options{ControllerManagerControllers: "*"},
			component: ControllerManager,
			want: []string{
				"kube-controller-manager",
				"--kubeconfig=STATE/kubeconfigs/kube-controller-manager.kubeconfig",
				"--controllers=*",
				"--leader-elect=false",
				"--use-service-account-credentials",
				"--service-account-private-key-file=STATE/pki/service-account.key",
				"--root-ca-file=STATE/pki/cluster-ca.crt",
				"--kube-api-qps=100",
				"--kube-api-burst=200",
				"--bind-address=127.0.0.1",
				"--secure-port=20004",
				"--client-ca-file=STATE/pki/cluster-ca.crt",
				"--authentication-kubeconfig=STATE/kubeconfigs/kube-controller-manager.kubeconfig",
				"--authentication-skip-lookup",
				"--authorization-kubeconfig=STATE/kubeconfigs/kube-controller-manager.kubeconfig",
				"--tls-cert-file=STATE/pki/serving.crt",
				"--tls-private-key-file=STATE/pki/serving.key",
			},
		},
	})
}

func TestEverythingListensOnLoopback(t *testing.T) {
	l := testLayout(t, Options{})
	listening := map[string]string{
		Etcd:              "--listen-client-urls=https://127.0.0.1:20001",
		APIServer:         "--bind-address=127.0.0.1",
		ControllerManager: "--bind-address=127.0.0.1",
		Scheduler:         "--bind-address=127.0.0.1",
		Node:              "--address=127.0.0.1:20006",
		Engine:            "--grpc-address=127.0.0.1:20007",
		Executor:          "--http-address=127.0.0.1:20009",
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(listening)), slices.Sorted(slices.Values(Options{Node: Processes}.componentNames()))); diff != "" {
		t.Fatalf("components in this test (-want +got):\n%s", diff)
	}
	for component, want := range listening {
		args := argsOf(t, l, component)
		if !slices.Contains(args, want) {
			t.Errorf("%s has no argument %s: %q", component, want, args)
		}
		for _, arg := range args {
			if strings.Contains(arg, "=0.0.0.0") || strings.Contains(arg, "/0.0.0.0") || strings.Contains(arg, "[::]") {
				t.Errorf("%s listens on every address: %s", component, arg)
			}
		}
	}
}

func TestStagesFollowTheOptions(t *testing.T) {
	cases := map[string]struct {
		opts Options
		want [][]string
	}{
		"everything": {
			want: [][]string{{Etcd, Engine}, {APIServer}, {ControllerManager, Scheduler, Node}, {Executor}},
		},
		"as little as possible": {
			opts: Options{WithoutEngine: true, WithoutExecutor: true, WithoutNode: true, WithoutScheduler: true},
			want: [][]string{{Etcd}, {APIServer}, {ControllerManager}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got [][]string
			for _, stage := range testLayout(t, tc.opts).layoutStages() {
				var names []string
				for _, comp := range stage {
					names = append(names, comp.name)
				}
				got = append(got, names)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("stages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestKubeconfigStandsAlone(t *testing.T) {
	l := testLayout(t, Options{})
	if err := l.writeKubeconfigs(); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", l.adminKubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("https://127.0.0.1:20003", config.Host); diff != "" {
		t.Errorf("server (-want +got):\n%s", diff)
	}
	tls := config.TLSClientConfig
	if len(tls.CAData) == 0 || len(tls.CertData) == 0 || len(tls.KeyData) == 0 {
		t.Error("certificates are not part of the file")
	}
	if tls.CAFile != "" || tls.CertFile != "" || tls.KeyFile != "" {
		t.Errorf("the file points to others: %q %q %q", tls.CAFile, tls.CertFile, tls.KeyFile)
	}
}
