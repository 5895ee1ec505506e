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

// How long a call waits for a processor, and a large request for its place and its memory. A
// server that cannot keep up refuses calls instead of letting a queue grow. Large requests wait
// longer, because each takes longer.
const (
	processorTimeout    = time.Second
	largeRequestTimeout = 5 * time.Second
)

// largeRequest is the decoded size above which a request is large. Few large requests are
// decoded at a time, and each waits for its memory. The memory of smaller ones is not
// counted, because the number of processors limits it.
const largeRequest = 256 << 10

// A turn is a call's right to use a processor, and memory if the request is large.
type turn struct {
	call      *call
	processor func() // releases the processor; nil: the call has none
	memory    []func()
}

// decode waits for a processor, and for memory if the message is large, and decodes the
// message. The memory is kept until the end.
func (t *turn) decode(ctx context.Context, body []byte, m proto.Message) error {
	if err := t.takeProcessor(ctx); err != nil { // To measure a message takes processor time, too.
		return err
	}
	descriptor, most := m.ProtoReflect().Descriptor(), t.call.conn.caller.decoded.pool.most
	size := measureMessage(body, descriptor, most)
	if size.overlong != "" {
		return refusal.InvalidArgument(engine.FieldViolation{
			Field: size.overlong, Description: fmt.Sprintf("has more than %d entries, which no list may have", maxEntries),
		})
	}
	if size.bytes > most {
		return refusal.TooLarge(jobpolicyv1.ErrorReason_ERROR_REASON_REQUEST_TOO_LARGE, "decoded, the request takes at least", size.bytes, most)
	}
	if size.bytes > largeRequest {
		if err := t.makeRoom(ctx, size.bytes); err != nil {
			return err
		}
	}
	return decodeMessage(body, m, descriptor)
}

func (t *turn) takeProcessor(ctx context.Context) error {
	release, err := t.take(ctx, t.call.conn.caller.processors, 1, processorTimeout, "processors")
	if err != nil {
		return err
	}
	t.processor = release
	return nil
}

// makeRoom waits for what a large message of this decoded size needs. Meanwhile the call has no
// processor.
func (t *turn) makeRoom(ctx context.Context, bytes int64) error {
	t.end()
	caller := t.call.conn.caller
	for _, of := range []struct {
		share *share
		n     int64
		kind  string
	}{{caller.largeRequests, 1, "processors for large requests"}, {caller.decoded, bytes, "memory for decoded requests"}} {
		release, err := t.take(ctx, of.share, of.n, largeRequestTimeout, of.kind)
		if err != nil {
			return err
		}
		t.memory = append(t.memory, release)
	}
	return t.takeProcessor(ctx)
}

// take waits for n of a share. If there is no room, the turn ends.
func (t *turn) take(ctx context.Context, s *share, n int64, timeout time.Duration, kind string) (release func(), err error) {
	if err := s.acquireWithin(ctx, timeout, n); err != nil {
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
	t.processor = nil
}

func (t *turn) freeMemory() {
	for _, release := range t.memory {
		release()
	}
	t.memory = nil
}
