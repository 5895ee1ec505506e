package policyserver

import (
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// large is an answer whose memory is counted.
func large() *jobpolicyv1.DecideJobResponse {
	return &jobpolicyv1.DecideJobResponse{RequestId: strings.Repeat("x", chunkBytes)}
}

// A handler may still answer when its connection is closed already. The transport never
// writes that answer, so nothing would release its memory.
func TestAnAnswerForAClosedConnectionKeepsNoMemory(t *testing.T) {
	cs := newCallers(newPools(Config{MaxConcurrentCalls: 2, MaxOpenCalls: 2, MemoryLimit: MinMemoryLimit}), 1, 1)
	raw, _ := net.Pipe()
	conn := &connection{Conn: raw, callers: cs, answers: map[*answer]struct{}{}}
	if _, err := cs.connect(conn, "cn:executor"); err != nil {
		t.Fatal(err)
	}
	before := &encoded{conn: conn}
	if err := before.addWhole(large()); err != nil {
		t.Fatal(err)
	}
	held := func() int64 { return cs.pools.answers.held.Load() }
	if held() < chunkBytes {
		t.Fatalf("an answer holds %d bytes, want %d or more", held(), chunkBytes)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if held() != 0 {
		t.Errorf("an answer of before the end of its connection holds %d bytes", held())
	}
	after := &encoded{conn: conn}
	if err := after.addWhole(large()); status.Code(err) != codes.Canceled {
		t.Errorf("error %v, want CANCELED", err)
	}
	if held() != 0 {
		t.Errorf("an answer of after the end of its connection holds %d bytes", held())
	}
}
