package policyserver

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/refusal"
)

// How long a call waits for its turn. A server that cannot keep up refuses calls instead
// of letting a queue grow. Large requests wait longer, because each takes longer.
const (
	turnPatience  = time.Second
	largePatience = 5 * time.Second
)

// largeRequest is the decoded size above which a request is large. Few large requests are
// decoded at a time, and each waits for its memory. The memory of smaller ones is not
// counted, because the number of turns limits it.
const largeRequest = 256 << 10

// itemsPerTurn is how many items of a batch are decided on in one turn. Handing a turn
// over wakes a thread, which costs other calls processor time.
const itemsPerTurn = 32

// A turn is a call's right to use a processor, and memory if the request is large. A batch
// keeps the processor for several items.
type turn struct {
	call *call
	// items is how many more may be decided on, while the call has a processor.
	items     int
	processor func() // releases the processor; nil: the call has none
	memory    []func()
}

// decode waits for a processor, and for memory if the message is large, and decodes the
// message. The memory is kept until the next message or the end.
func (t *turn) decode(ctx context.Context, body []byte, m proto.Message) error {
	descriptor := m.ProtoReflect().Descriptor()
	size := measureMessage(body, descriptor)
	if size.overlong != "" {
		return refusal.InvalidArgument(engine.FieldViolation{
			Field: size.overlong, Description: fmt.Sprintf("has more than %d entries, which no list may have", maxEntries),
		})
	}
	if err := t.wait(ctx, size.bytes); err != nil {
		return err
	}
	return decodeMessage(body, m, descriptor)
}

// wait waits for what a message of this decoded size needs.
func (t *turn) wait(ctx context.Context, bytes int64) error {
	caller := t.call.conn.caller
	if bytes > caller.decoded.pool.most {
		return refusal.TooLarge(jobpolicyv1.ErrorReason_ERROR_REASON_REQUEST_TOO_LARGE, "decoded, the request takes", bytes, caller.decoded.pool.most)
	}
	t.freeMemory()
	if t.items == 0 || bytes > largeRequest {
		t.end() // A call that waits must not keep a processor from others.
	}
	if bytes > largeRequest {
		for _, of := range []struct {
			share *share
			n     int64
			kind  string
		}{{caller.large, 1, "processors for large requests"}, {caller.decoded, bytes, "memory for decoded requests"}} {
			release, err := t.take(ctx, of.share, of.n, largePatience, of.kind)
			if err != nil {
				return err
			}
			t.memory = append(t.memory, release)
		}
	}
	if t.processor == nil {
		release, err := t.take(ctx, caller.turns, 1, turnPatience, "processors")
		if err != nil {
			return err
		}
		t.processor, t.items = release, itemsPerTurn
	}
	t.items--
	return nil
}

// take waits for n of a share. If there is no room, the turn ends.
func (t *turn) take(ctx context.Context, s *share, n int64, patience time.Duration, kind string) (release func(), err error) {
	if err := s.acquireWithin(ctx, patience, n); err != nil {
		t.end()
		if ctx.Err() != nil {
			return nil, refusal.FromContext(ctx.Err())
		}
		return nil, t.call.conn.caller.noRoom(err, kind)
	}
	return func() { s.release(n) }, nil
}

// end releases what the turn has.
func (t *turn) end() {
	t.freeMemory()
	if t.processor != nil {
		t.processor()
	}
	t.processor, t.items = nil, 0
}

func (t *turn) freeMemory() {
	for _, release := range t.memory {
		release()
	}
	t.memory = nil
}
