package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jobpolicy.dev/deploy/local/internal/statedir"
	"jobpolicy.dev/deploy/local/must"
)

// The components of these tests are this test binary itself, playing one part.
const partEnv = "CLUSTER_TEST_PART"

var parts = map[string]func(args []string){
	// serve ADDRESS shows its arguments, and listens until it is told to end.
	"serve": func(args []string) {
		fmt.Println("serving", args)
		listener, err := net.Listen("tcp", args[0])
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println("listening", args)
		for {
			conn, err := listener.Accept()
			if err != nil {
				os.Exit(1)
			}
			conn.Close()
		}
	},
	// crash ends at once.
	"crash": func([]string) {
		fmt.Println("the disk is on fire")
		os.Exit(3)
	},
	// idle never listens.
	"idle": func([]string) {
		fmt.Println("thinking")
		for {
			time.Sleep(time.Hour)
		}
	},
}

func TestMain(m *testing.M) {
	if part, ok := parts[os.Getenv(partEnv)]; ok {
		part(os.Args[1:])
		return
	}
	os.Exit(m.Run())
}

// fakeCluster is a Cluster of fake components and the record of its progress.
type fakeCluster struct {
	*Cluster
	mu    sync.Mutex
	steps []Progress
}

func newFakeCluster(t *testing.T, opts Options, stages ...[]string) *fakeCluster {
	t.Helper()
	f := &fakeCluster{}
	opts.Progress = f.record
	if opts.StartTimeout == 0 {
		opts.StartTimeout = time.Minute
	}
	opts.StateDir = filepath.Join(t.TempDir(), "state")
	dir, err := statedir.Open(opts.StateDir)
	must.Succeed(t, err)
	l, err := newLayout(opts, dir)
	must.Succeed(t, err)
	f.Cluster = newCluster(l)
	f.stages = nil
	for _, names := range stages {
		var stage []*component
		for _, name := range names {
			stage = append(stage, f.fake(name))
		}
		f.stages = append(f.stages, stage)
	}
	t.Cleanup(func() {
		if err := f.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return f
}

// fake makes a component that plays the part in its name, after the last dash:
// etcd-serve serves. It is ready when its port answers.
func (f *fakeCluster) fake(name string) *component {
	l := f.layout
	comp := l.named(&component{
		name:      name,
		path:      os.Args[0],
		listeners: []string{name},
		args:      func() []string { return []string{l.ports.address(name)} },
		ready: func(ctx context.Context) error {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.ports.address(name))
			if err != nil {
				return errors.New("nobody listens")
			}
			return conn.Close()
		},
	})
	comp.env = []string{partEnv + "=" + name[strings.LastIndex(name, "-")+1:]}
	return comp
}

func (f *fakeCluster) mustComponent(t *testing.T, name string) *component {
	t.Helper()
	comp, err := f.component(name)
	must.Succeed(t, err)
	return comp
}

func (f *fakeCluster) record(p Progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.steps = append(f.steps, p)
}

// order lists the components that reached state, in the order of the reports.
func (f *fakeCluster) order(state State) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for _, p := range f.steps {
		if p.State == state {
			names = append(names, p.Component)
		}
	}
	return names
}

// begin starts all stages, without what needs a real API server.
func (f *fakeCluster) begin(ctx context.Context) error {
	for _, stage := range f.stages {
		if err := f.startStage(ctx, stage); err != nil {
			return err
		}
	}
	return nil
}

func (f *fakeCluster) mustBegin(t *testing.T) {
	t.Helper()
	must.Succeed(t, f.begin(t.Context()))
}

// noneRuns reports whether every component's process has ended.
func (f *fakeCluster) noneRuns() bool {
	return !slices.ContainsFunc(slices.Concat(f.stages...), (*component).running)
}
