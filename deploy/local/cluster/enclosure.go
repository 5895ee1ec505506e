package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"jobpolicy.dev/deploy/local/internal/cgroups"
	"jobpolicy.dev/deploy/local/internal/containernode"
	"jobpolicy.dev/deploy/local/internal/namespaces"
	"jobpolicy.dev/deploy/local/internal/statedir"
	"jobpolicy.dev/deploy/local/internal/supervise"
)

// enclosure is the namespaces in which a cluster with real containers lives. The
// methods of a nil enclosure serve a cluster that lives on the machine itself.
type enclosure struct {
	config     namespaces.Config
	configFile string

	// first is the process id, outside, of the first process inside.
	first int
	// thread and forwarder exist while the namespaces do. They are set before the
	// components inside start, and cleared after these have ended.
	thread    *supervise.Thread
	forwarder *namespaces.Forwarder
}

// newEnclosure returns nil if the options ask for none.
func newEnclosure(opts Options, dir *statedir.Dir) (*enclosure, error) {
	if opts.Node != Containers {
		return nil, nil
	}
	visible := []string{dir.Path()}
	for _, binary := range append(opts.binaries(), opts.NodeBinDir) {
		path, err := filepath.Abs(filepath.Dir(binary))
		if err != nil {
			return nil, err
		}
		visible = append(visible, path)
	}
	return &enclosure{
		configFile: dir.Path("node", "namespaces.json"),
		config: namespaces.Config{
			Hostname:     opts.NodeName,
			Root:         dir.Path("node", "root"),
			Visible:      visible,
			NodeAddress:  containernode.NodeAddress,
			ServiceRange: containernode.ServiceRange,
			Cgroup:       cgroups.For(dir.Path()),
		},
	}, nil
}

// enclosed reports whether the components live in namespaces of their own.
func (l *layout) enclosed() bool { return l.inside != nil }

// addresses are those of the API server and the kubelet inside.
func (e *enclosure) addresses() []string {
	if e == nil {
		return nil
	}
	return []string{containernode.NodeAddress.String(), containernode.APIServerService.String()}
}

// startThread returns the thread that starts components, nil for any.
func (e *enclosure) startThread() *supervise.Thread {
	if e == nil {
		return nil
	}
	return e.thread
}

// forward makes the listeners' ports reachable from outside. One that was taken
// since it was chosen is chosen again.
func (e *enclosure) forward(ports *portSet, listeners []string) error {
	if e == nil {
		return nil
	}
	for _, name := range listeners {
		err := e.forwarder.Open(ports.address(name))
		for range portAttempts {
			if !errors.Is(err, syscall.EADDRINUSE) {
				break
			}
			if err = ports.choose([]string{name}); err == nil {
				err = e.forwarder.Open(ports.address(name))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// enter makes what needs a process inside, which is the first there.
func (l *layout) enter(first int) error {
	thread, err := namespaces.Enter(first)
	if err != nil {
		return err
	}
	e := l.inside
	e.first, e.thread, e.forwarder = first, thread, namespaces.NewForwarder(thread)
	return os.WriteFile(l.dir.Path(firstFile), []byte(strconv.Itoa(first)), 0o600)
}

// firstFile is the file of the state directory that holds enclosure.first.
const firstFile = "node/first.pid"

// remove ends the forwarder and the thread, and removes the control group.
func (e *enclosure) remove() error {
	if e == nil || e.thread == nil {
		return nil
	}
	e.forwarder.Close()
	e.thread.End()
	return e.config.Cgroup.Remove()
}

// removeLeftovers removes what killed clusters left: the one with this state directory, and
// others.
func removeLeftovers(dir *statedir.Dir) error {
	// Its processes may be about to end.
	if err := cgroups.For(dir.Path()).Remove(); err != nil {
		return fmt.Errorf("what an earlier run left: %w", err)
	}
	return cgroups.RemoveAbandoned()
}

// namespaces is the first process inside. The others are started after it, and
// end when it does.
func (l *layout) namespaces() *component {
	var comp *component
	comp = l.local(&component{
		name:       Namespaces,
		namespaces: namespaces.CloneFlags,
		prepare:    func() error { return l.inside.config.Save(l.inside.configFile) },
		args:       func() []string { return []string{"--config=" + l.inside.configFile} },
		ready:      func(context.Context) error { return l.inside.config.Ready() },
		afterFirst: func(context.Context) error { return l.enter(comp.current.Load().proc.PID()) },
	}, "namespaces")
	return comp
}
