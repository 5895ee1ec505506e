package policyserver

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// connected returns a connection of one of few callers, and its other end.
func connected(t *testing.T) (conn *connection, other net.Conn) {
	t.Helper()
	cs := newCallers(newPools(Config{MaxConcurrentCalls: 2, MaxOpenCalls: 2, MemoryLimit: MinMemoryLimit}), 1, 1)
	raw, other := net.Pipe()
	conn = &connection{Conn: raw, callers: cs, answers: map[*answer]struct{}{}}
	if _, err := cs.connect(conn, "cn:executor"); err != nil {
		t.Fatal(err)
	}
	return conn, other
}

const largeBytes = 64 << 10

// large is an answer whose memory is counted.
func large() *jobpolicyv1.DecideJobResponse {
	return &jobpolicyv1.DecideJobResponse{RequestId: strings.Repeat("x", largeBytes)}
}

// A handler may still answer when its connection is closed already. The transport never
// writes that answer, so nothing would release its memory.
func TestAnAnswerForAClosedConnectionKeepsNoMemory(t *testing.T) {
	conn, _ := connected(t)
	before := &encoded{call: &call{conn: conn}}
	if err := before.encode(large()); err != nil {
		t.Fatal(err)
	}
	held := func() int64 { return conn.callers.pools.answers.held.Load() }
	if held() < largeBytes {
		t.Fatalf("an answer holds %d bytes, want %d or more", held(), largeBytes)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if held() != 0 {
		t.Errorf("an answer of before the end of its connection holds %d bytes", held())
	}
	after := &encoded{call: &call{conn: conn}}
	if err := after.encode(large()); status.Code(err) != codes.Canceled {
		t.Errorf("error %v, want CANCELED", err)
	}
	if held() != 0 {
		t.Errorf("an answer of after the end of its connection holds %d bytes", held())
	}
}

// A call may end while its answer is handed over. The transport then drops the answer, and does not
// report that. It must not cost the connection, on which others' calls go on. But once the
// transport has taken the end of the answer, the caller does not read it.
func TestAnAnswerThatTheTransportDroppedCostsNoConnection(t *testing.T) {
	for name, tc := range map[string]struct{ ended, trailed, closed bool }{
		"the call ended before its answer did": {ended: true},
		"the answer is not read":               {ended: true, trailed: true, closed: true},
		"a watch is not read":                  {closed: true},
	} {
		t.Run(name, func(t *testing.T) {
			conn, other := connected(t)
			c := &call{conn: conn}
			c.ended.Store(tc.ended)
			c.trailed.Store(tc.trailed)
			sent := &encoded{call: c, timeout: time.Nanosecond}
			if err := sent.encode(large()); err != nil {
				t.Fatal(err)
			}
			sent.send()
			for until := time.Now().Add(20 * time.Second); conn.callers.pools.answers.held.Load() > 0; time.Sleep(time.Millisecond) {
				if time.Now().After(until) {
					t.Fatal("the answer's memory is not given back")
				}
			}
			err := other.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			if err == nil {
				_, err = other.Read(make([]byte, 1))
			}
			if closed := errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe); closed != tc.closed {
				t.Errorf("closed %v, want %v: %v", closed, tc.closed, err)
			}
		})
	}
}

// frames is a stream whose frames have one byte each. It collects what a read asks for, as the
// transport does.
type frames struct {
	left, most int
}

func (f *frames) ReadMessageHeader([]byte) error { return nil }

func (f *frames) Read(n int) (mem.BufferSlice, error) {
	if f.left == 0 {
		return nil, io.EOF
	}
	f.most = max(f.most, n)
	f.left -= n
	return mem.BufferSlice{mem.SliceBuffer(make([]byte, n))}, nil
}

// The transport keeps forty bytes for a frame of one byte until a read has all that it asks for.
func TestAMessageIsReadInSmallParts(t *testing.T) {
	stream := &frames{left: 1<<20 + 1}
	m := &message{body: make([]byte, stream.left)}
	if err := m.fill(t.Context(), stream); err != nil {
		t.Fatal(err)
	}
	if stream.left != 0 || stream.most > 4<<10 {
		t.Errorf("%d bytes are left, and a read asks for %d, want at most 4096", stream.left, stream.most)
	}
}
