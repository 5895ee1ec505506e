package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobpolicy.dev/deploy/local/must"
)

// binaries makes a directory with empty files of the given names.
func binaries(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), nil, 0o700))
	}
	return dir
}

func TestGoodOptionsAreAccepted(t *testing.T) {
	all := binaries(t, LocalBinary, EngineBinary, ExecutorBinary)
	cases := map[string]Options{
		"the least that is needed": {StateDir: "s", BinDir: all},
		"executables named one by one": {
			StateDir:     "s",
			LocalPath:    filepath.Join(all, LocalBinary),
			EnginePath:   filepath.Join(all, EngineBinary),
			ExecutorPath: filepath.Join(all, ExecutorBinary),
		},
		"no executables of parts that are left out": {
			StateDir: "s", BinDir: binaries(t, LocalBinary), WithoutEngine: true, WithoutExecutor: true,
		},
	}
	for name, opts := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := opts.complete(); err != nil {
				t.Errorf("got %v, want no error", err)
			}
		})
	}
}

func TestPathsOfExecutablesBecomeAbsolute(t *testing.T) {
	all := binaries(t, LocalBinary, EngineBinary, ExecutorBinary)
	t.Chdir(filepath.Dir(all))
	opts, err := Options{StateDir: "s", BinDir: filepath.Base(all)}.complete()
	must.Succeed(t, err)
	for _, path := range []string{opts.LocalPath, opts.EnginePath, opts.ExecutorPath, opts.NodeBinDir} {
		if !filepath.IsAbs(path) {
			t.Errorf("path %q, want an absolute one: components run in directories of their own", path)
		}
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	all := binaries(t, LocalBinary, EngineBinary, ExecutorBinary)
	cases := map[string]struct {
		opts Options
		want []string // parts of the error
	}{
		"nothing": {
			opts: Options{},
			want: []string{"StateDir must be set", LocalBinary, EngineBinary, ExecutorBinary},
		},
		"a missing executable": {
			opts: Options{StateDir: "s", BinDir: binaries(t, LocalBinary, EngineBinary)},
			want: []string{"build.sh", ExecutorBinary},
		},
		"arguments for a component that does not exist": {
			opts: Options{StateDir: "s", BinDir: all, ExtraArgs: map[string][]string{"engine": {"--x"}}},
			want: []string{`no component is called "engine"`, Engine},
		},
		"an environment for a component that does not exist": {
			opts: Options{StateDir: "s", BinDir: all, ExtraEnv: map[string][]string{"kubelet": {"A=B"}}},
			want: []string{`no component is called "kubelet"`},
		},
		"a node with containers whose programs are not built": {
			opts: Options{StateDir: "s", BinDir: all, Node: Containers, NodeBinDir: "/nonexistent", Images: []string{"/none.tar"}},
			want: []string{"/nonexistent/containerd:", "/nonexistent/cni/ptp:", "make build-node", "an image: stat /none.tar"},
		},
		"a node with containers, and none": {
			opts: Options{StateDir: "s", BinDir: all, Node: Containers, WithoutNode: true},
			want: []string{"exclude each other"},
		},
		"an unknown kind of node": {
			opts: Options{StateDir: "s", BinDir: all, Node: "x"},
			want: []string{`Node "x": want processes or containers`},
		},
		"a node name that is no DNS name": {
			opts: Options{StateDir: "s", BinDir: all, NodeName: "My Node"},
			want: []string{`NodeName "My Node"`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := tc.opts.complete()
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q: %v", want, err)
				}
			}
		})
	}
}

func TestKeptStateIsNeitherDeletedNorMixed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	open := func(keep bool) error {
		dir, err := openStateDir(Options{StateDir: path, Keep: keep})
		if err != nil {
			return err
		}
		return dir.Close()
	}
	leave := func(name string) {
		t.Helper()
		must.Succeed(t, os.WriteFile(filepath.Join(path, name), nil, 0o600))
	}
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(path, name))
		return err == nil
	}

	must.Succeed(t, open(false))
	leave("leftover of a run that was killed")
	must.Succeed(t, open(false))
	if has("leftover of a run that was killed") {
		t.Error("a run without Keep continues what another left")
	}

	must.Succeed(t, open(true))
	leave("kept")
	if err := open(false); err == nil {
		t.Error("a run without Keep, which deletes its directory, accepts one that was kept")
	}
	if err := open(true); err != nil {
		t.Error(err)
	}
	if !has("kept") {
		t.Error("kept state is gone")
	}
}

func TestProgressLines(t *testing.T) {
	cases := map[string]struct {
		progress Progress
		want     string
	}{
		"starting": {
			Progress{Component: Etcd, State: Starting},
			"etcd                     starting",
		},
		"waiting": {
			Progress{Component: APIServer, State: Waiting, Elapsed: 5 * time.Second, Detail: "etcd failed"},
			"kube-apiserver           not ready after 5s: etcd failed",
		},
		"ready": {
			Progress{Component: Node, State: Ready, Elapsed: 1234 * time.Millisecond},
			"node                     ready after 1.2s",
		},
		"killed": {
			Progress{Component: Node, State: Killed, Elapsed: 20 * time.Second},
			"node                     killed after 20s",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			must.Equal(t, "line", tc.want, tc.progress.String())
		})
	}
}
