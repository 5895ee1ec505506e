package world

import (
	"context"
	"fmt"
	"sync"

	"jobpolicy.dev/test/simulated/parity/virtual"
)

// secondName is the field manager of the built-in Job controller that runs although the
// executors replace it. executorManager is the field manager of all executors.
const secondName, executorManager = "kube-controller-manager", "executor"

func isSecond(by string) bool { return by == secondName }

// fieldManager is the name that the API server records for a client.
func fieldManager(by string) string {
	if isExecutor(by) {
		return executorManager
	}
	return by
}

// A second is the built-in Job controller, which somebody left on. Its network is as slow as
// that of executors, but nothing fails there: worlds do not search for its defects.
type second struct {
	w *world

	mu    sync.Mutex
	stop  func() // nil: it is off.
	ended sync.WaitGroup
}

// switchOn starts the built-in Job controller.
func (s *second) switchOn(*step) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		return fmt.Errorf("it is on")
	}
	w := s.w
	quiet := *w.plan
	quiet.faults = nil
	n := newNetwork(&quiet, w.begun, w.note)
	n.runAway = func() { w.broken("run", "there is no end to what the built-in controller sends") }
	l := n.link(secondName, w.server.Transport(secondName))
	ctx, end := context.WithCancel(background)
	s.stop = func() {
		l.cut()
		end()
	}
	s.ended.Go(func() {
		if err := virtual.BuiltinJobs(ctx, virtual.Config(l)); err != nil {
			w.broken("run", "the built-in controller ended: "+err.Error())
		}
	})
	return nil
}

// switchOff ends the built-in Job controller at once.
func (s *second) switchOff(*step) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop == nil {
		return fmt.Errorf("it is off")
	}
	s.stop()
	s.stop = nil
	return nil
}
