package policyserver

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	jobpolicyv1grpc "jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/refusal"
)

// leastBytes is the least size of an answer's buffer. The transport copies smaller ones, and
// does not report when it has written them.
const leastBytes = 1<<10 + 1

// An answer is the memory of an encoded answer. To the transport it is the pool of the answer's
// buffer, so the transport calls Put when it has written it.
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
	buffer  mem.Buffer // nil: there is none yet
	answer  *answer
	call    *call
	timeout time.Duration
}

// encode encodes the message, and counts its memory.
func (e *encoded) encode(m proto.Message) error {
	size := proto.Size(m)
	if size > jobpolicyv1grpc.MaxMessageBytes {
		return refusal.TooLarge(jobpolicyv1.ErrorReason_ERROR_REASON_ANSWER_TOO_LARGE, "the answer takes", int64(size), jobpolicyv1grpc.MaxMessageBytes)
	}
	room := max(size, leastBytes)
	// The transport keeps the call with its metadata until the answer is written.
	if err := e.count(int64(room) + maxHeaderBytes); err != nil {
		return err
	}
	// Equal decisions have equal bytes: the entries of maps are in order.
	b, err := proto.MarshalOptions{Deterministic: true, UseCachedSize: true}.MarshalAppend(make([]byte, 0, room), m)
	e.buffer = mem.NewBuffer(&b, e.answer)
	if err != nil {
		return refusal.ErrInternal
	}
	return nil
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
	e.answer = a
	return nil
}

// send hands the buffer over to the transport.
func (e *encoded) send() mem.BufferSlice {
	e.answer.expire(e.timeout)
	return mem.BufferSlice{e.buffer}
}

// free releases an answer that will not be sent.
func (e *encoded) free() {
	if e.buffer != nil {
		e.buffer.Free()
	}
}
