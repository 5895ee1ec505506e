package policyserver

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	jobpolicyv1grpc "jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/refusal"
)

// chunkBytes is the least size of every piece of a batch's answer after the first.
const chunkBytes = 64 << 10

// pieceBytes is the least size of a piece. The transport copies smaller buffers, and does not
// report when it has written them.
const pieceBytes = 1<<10 + 1

// An answer is the memory of one piece of an encoded answer. To the transport it is the
// buffer pool of that piece, so the transport calls Put when it has written the piece.
type answer struct {
	call  *call
	bytes int64
	done  atomic.Bool
	timer atomic.Pointer[time.Timer]
}

// Get implements mem.BufferPool. Nobody asks for another buffer.
func (a *answer) Get(n int) *[]byte { b := make([]byte, n); return &b }

// Put implements mem.BufferPool: the answer is written, or never will be.
func (a *answer) Put(*[]byte) {
	conn := a.call.conn
	conn.mu.Lock()
	delete(conn.answers, a)
	conn.mu.Unlock()
	a.finish()
}

// finish releases the memory, once.
func (a *answer) finish() {
	if a.done.Swap(true) {
		return
	}
	if t := a.timer.Load(); t != nil {
		t.Stop()
	}
	a.call.conn.caller.answers.release(a.bytes)
}

// expire closes the connection if the answer is not written in time. A caller
// that does not read must not keep memory for as long as it likes.
func (a *answer) expire(after time.Duration) {
	a.timer.Store(time.AfterFunc(after, func() {
		switch {
		case a.done.Load():
		case a.call.ended.Load() && !a.call.trailed.Load():
			a.Put(nil) // The call ended before its answer did. The transport may have dropped the answer, and does not report that.
		default:
			_ = a.call.conn.Close() // the transport then fails the calls
		}
	}))
}

// An encoded message is an answer on its way to the transport.
type encoded struct {
	buffers mem.BufferSlice
	answers []*answer
	open    *[]byte // the last piece, while it has room
	bytes   int64
	call    *call
	timeout time.Duration
}

// addWhole encodes the message.
func (e *encoded) addWhole(m proto.Message) error { return e.add(nil, m, proto.Size(m)) }

// add appends the prefix and the encoded message, whose size proto.Size has just returned.
func (e *encoded) add(prefix []byte, m proto.Message, size int) error {
	size += len(prefix)
	if e.bytes += int64(size); e.bytes > jobpolicyv1grpc.MaxMessageBytes {
		return refusal.TooLarge(jobpolicyv1.ErrorReason_ERROR_REASON_ANSWER_TOO_LARGE, "the answer takes", e.bytes, jobpolicyv1grpc.MaxMessageBytes)
	}
	b, err := e.room(size)
	if err != nil {
		return err
	}
	// Equal decisions have equal bytes: the entries of maps are in order.
	out, err := proto.MarshalOptions{Deterministic: true, UseCachedSize: true}.MarshalAppend(append(*b, prefix...), m)
	if err != nil {
		return refusal.ErrInternal
	}
	*b = out
	return nil
}

// addItem encodes the message as an entry of a list.
func (e *encoded) addItem(list protowire.Number, m proto.Message) error {
	size := proto.Size(m)
	prefix := protowire.AppendTag(nil, list, protowire.BytesType)
	return e.add(protowire.AppendVarint(prefix, uint64(size)), m, size)
}

// room returns a piece with room for n more bytes.
func (e *encoded) room(n int) (*[]byte, error) {
	if e.open != nil && cap(*e.open)-len(*e.open) >= n {
		return e.open, nil
	}
	e.seal()
	n = max(n, pieceBytes)
	if e.buffers != nil {
		n = max(n, chunkBytes)
	}
	size := int64(n)
	if len(e.answers) == 0 {
		size += maxHeaderBytes // The transport keeps the call with its metadata until the answer is written.
	}
	if err := e.count(size); err != nil {
		return nil, err
	}
	b := make([]byte, 0, n)
	e.open = &b
	return e.open, nil
}

// mustCount makes a piece if there is none: an answer without a byte keeps its call, too.
func (e *encoded) mustCount() error {
	if len(e.answers) > 0 {
		return nil
	}
	_, err := e.room(0)
	return err
}

// count reserves n bytes of the memory for answers. It fails if the connection is
// closed: nobody would release the memory, because the transport writes no answer there.
func (e *encoded) count(n int64) error {
	conn := e.call.conn
	if err := conn.caller.answers.tryAcquireFair(n); err != nil {
		return conn.caller.noAnswer(err)
	}
	a := &answer{call: e.call, bytes: n}
	if !conn.keep(a) {
		a.finish()
		return refusal.FromContext(context.Canceled)
	}
	e.answers = append(e.answers, a)
	return nil
}

// seal makes the last piece a buffer of the transport.
func (e *encoded) seal() {
	if e.open == nil {
		return
	}
	e.buffers = append(e.buffers, mem.NewBuffer(e.open, e.answers[len(e.answers)-1]))
	e.open = nil
}

// send hands the buffers over to the transport.
func (e *encoded) send() mem.BufferSlice {
	e.seal()
	for _, a := range e.answers {
		a.expire(e.timeout)
	}
	return e.buffers
}

// free releases an answer that will not be sent.
func (e *encoded) free() {
	e.seal()
	e.buffers.Free()
}
