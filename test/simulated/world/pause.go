package world

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/test/simulated/world/apiserver"
)

// A pause is a time in which nothing passes between an executor and the servers: its
// process is frozen (SIGSTOP), or the API server and the engine hang for it alone.
type pause struct {
	over chan struct{} // Closed when the pause is over.
	// frozen: the process does not run, so it cannot notice that it has waited too long.
	frozen bool
}

// A brake delays everything that passes a link.
type brake struct {
	mu     sync.Mutex
	paused *pause
}

func (b *brake) current() *pause {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.paused
}

// pause begins a pause, and returns a function that ends it; false if there is one
// already.
func (l *link) pause(frozen bool) (end func(), ok bool) {
	l.brake.mu.Lock()
	defer l.brake.mu.Unlock()
	if l.brake.paused != nil {
		return nil, false
	}
	p := &pause{over: make(chan struct{}), frozen: frozen}
	l.brake.paused = p
	return func() {
		l.brake.mu.Lock()
		defer l.brake.mu.Unlock()
		l.brake.paused = nil
		close(p.over)
	}, true
}

// pass waits for the end of a pause, if there is one. froze: the process was frozen
// meanwhile.
func (l *link) pass(ctx context.Context) (froze bool, err error) {
	for p := l.brake.current(); p != nil; p = l.brake.current() {
		gaveUp := ctx.Done()
		if p.frozen {
			froze, gaveUp = true, nil
		}
		select {
		case <-p.over:
		case <-gaveUp:
			return froze, ctx.Err()
		case <-l.down:
			return froze, errCut
		}
	}
	return froze, nil
}

// freeze freezes an executor, or lets the API server hang for it: at once, or at the
// next renewal of its lease.
func (w *world) freeze(s *step) error {
	if s.text == atRenewal {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.freezing = s
		return nil
	}
	p := w.fleet.leader(s.n)
	if p == nil {
		return fmt.Errorf("no executor runs")
	}
	w.pause(s, p)
	return nil
}

// atRenewal: the process is frozen between a renewal of its lease and the answer.
const atRenewal = "at its next renewal"

// leaseWritten is called for each write of the lease, before it is answered.
func (w *world) leaseWritten(write apiserver.Write) {
	w.mu.Lock()
	s := w.freezing
	p := w.fleet.named(write.By)
	if s == nil || p == nil || w.calm.Load() {
		w.mu.Unlock()
		return
	}
	w.freezing = nil
	w.mu.Unlock()
	w.pause(s, p)
}

func (w *world) pause(s *step, p *process) {
	end, ok := p.link.pause(s.verb == "freeze")
	if !ok {
		return
	}
	w.note(p.name, "stands still for "+s.d.String())
	w.judge.hindered("", time.Now(), s.d+recovers)
	w.after(min(s.d, time.Until(w.begun.Add(w.plan.calm))), func() {
		w.note(p.name, "goes on")
		w.judge.disturbed(time.Now())
		end()
	})
}

// deleteLease is a user who wants another leader.
func (w *world) deleteLease(*step) error {
	w.judge.hindered("", time.Now(), recovers)
	return w.actor("user").CoordinationV1().Leases(leaseNamespace).Delete(background, leaseName, metav1.DeleteOptions{})
}
