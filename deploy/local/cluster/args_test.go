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
	"jobpolicy.dev/deploy/local/must"
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
	must.Succeed(t, err)
	t.Cleanup(func() { dir.Close() })
	l, err := newLayout(opts, dir)
	must.Succeed(t, err)
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
	must.Succeed(t, err)
	var args []string
	for _, arg := range comp.commandLine() {
		args = append(args, strings.ReplaceAll(arg, l.dir.Path(), "STATE"))
	}
	return args
}

func TestArgumentsFollowTheOptions(t *testing.T) {
	cases := map[string]struct {
		opts      Options
		component string
		want      []string // the last ones, or one anywhere
	}{
		"the executor asks the engine, and knows it by its authority": {
			component: Executor, want: []string{
				"--engine=127.0.0.1:20007", "--engine-ca-file=STATE/pki/engine-ca.crt", "--engine-cert-file=STATE/pki/engine-client.crt",
				"--engine-key-file=STATE/pki/engine-client.key", "--engine-server-name=localhost",
			},
		},
		"the controller manager asks for client certificates":       {Options{}, ControllerManager, []string{"--client-ca-file=STATE/pki/cluster-ca.crt"}},
		"the executor replaces the built-in controllers":            {Options{}, Executor, []string{"--replace-builtin"}},
		"the executor decides in its own process without an engine": {Options{WithoutEngine: true}, Executor, []string{"--engine=embedded"}},
		"the engine asks for client certificates":                   {Options{}, Engine, []string{"--client-ca-file=STATE/pki/engine-ca.crt"}},
		"the node asks for client certificates":                     {Options{}, Node, []string{"--client-ca-file=STATE/pki/kubelet-ca.crt"}},
		"the controllers that the options name":                     {Options{ControllerManagerControllers: "*"}, ControllerManager, []string{"--controllers=*"}},
		"extra arguments come last": {
			Options{ExtraArgs: map[string][]string{Node: {"--crash-backoff-base=1s"}}},
			Node,
			[]string{"--tls-private-key-file=STATE/pki/kubelet.key", "--crash-backoff-base=1s"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := argsOf(t, testLayout(t, tc.opts), tc.component)
			last := got[max(0, len(got)-len(tc.want)):]
			if !slices.Equal(last, tc.want) && (len(tc.want) > 1 || !slices.Contains(got, tc.want[0])) {
				t.Errorf("arguments %q, want %q", got, tc.want)
			}
		})
	}
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
			must.Equal(t, "stages", tc.want, got)
		})
	}
}

func TestKubeconfigStandsAlone(t *testing.T) {
	l := testLayout(t, Options{})
	must.Succeed(t, l.writeKubeconfigs())
	config, err := clientcmd.BuildConfigFromFlags("", l.adminKubeconfig())
	must.Succeed(t, err)
	must.Equal(t, "server", "https://127.0.0.1:20003", config.Host)
	tls := config.TLSClientConfig
	if len(tls.CAData) == 0 || len(tls.CertData) == 0 || len(tls.KeyData) == 0 {
		t.Error("certificates are not part of the file")
	}
	if tls.CAFile != "" || tls.CertFile != "" || tls.KeyFile != "" {
		t.Errorf("the file points to others: %q %q %q", tls.CAFile, tls.CertFile, tls.KeyFile)
	}
}
