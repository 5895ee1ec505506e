package leaderelection

import (
	"context"
	"sync/atomic"
)

// A term is the time for which a replica leads. An Election has at most one.
type term struct {
	ctx     context.Context // of the caller of Election.Run
	stop    func()          // ends the election
	lead    func(context.Context) error
	lost    context.Context // done when another replica was seen to hold the lease
	outcome chan error      // what lead returned
	stage   atomic.Int32    // one of the stages below
}

// The stages of a term, in their order.
const (
	candidate int32 = iota
	elected
	leading // lead was called
)

// run leads. held is done when the lease is lost. If the caller's context ends at the
// moment of the election, either run sees that the context is done, or withdraw sees that
// this replica was elected.
func (t *term) run(held context.Context) {
	t.stage.Store(elected)
	if t.ctx.Err() != nil {
		t.stop()
		return
	}
	t.stage.Store(leading)
	work, cancel := context.WithCancel(held)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	err := t.lead(work)
	// Before stop is called, only the loss of the lease ends held.
	if held.Err() != nil {
		err = ErrLost
	}
	t.outcome <- err
	t.stop()
}

// result is how the term ended. It is called after the election has ended. If lead is still
// running then, the lease was lost.
func (t *term) result() error {
	if t.lost.Err() != nil {
		return ErrLost
	}
	select {
	case err := <-t.outcome:
		return err
	default:
	}
	if t.stage.Load() == leading {
		return ErrLost
	}
	return nil
}

// withdraw ends the election for a replica that does not lead.
func (t *term) withdraw() {
	if t.stage.Load() == candidate {
		t.stop()
	}
}
