package policyserver

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A caller's batch lets its other calls have a turn in between.
func TestABatchHandsItsTurnOverAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCaller("caller", "caller", newPools(Config{MaxConcurrentCalls: 2, MaxOpenCalls: 2, MemoryLimit: MinMemoryLimit})) // one of one caller
		batch, other := &turn{call: &call{conn: &connection{caller: c}}}, &turn{call: &call{conn: &connection{caller: c}}}
		answered, otherAfter := 0, -1
		for answered < 10 {
			if err := batch.begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			answered++
			if answered == 1 {
				go func() {
					if err := other.begin(t.Context()); err != nil {
						t.Error(err)
					}
					otherAfter = answered
					other.end()
				}()
			}
			time.Sleep(turnTime / 4) // An item takes so long.
			synctest.Wait()
		}
		batch.end()
		synctest.Wait()
		if otherAfter != 4 {
			t.Errorf("the other call had its turn after %d items, want 4", otherAfter)
		}
		if held := c.processors.pool.held.Load(); held != 0 {
			t.Errorf("%d processors are held at the end", held)
		}
	})
}

// To measure a large message takes a processor as long as to decode a small one, so a caller
// that has no turn does not measure.
func TestAMessageIsMeasuredInItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCaller("caller", "caller", newPools(Config{MaxConcurrentCalls: 2, MaxOpenCalls: 2, MemoryLimit: MinMemoryLimit})) // one of one caller
		first, second := &turn{call: &call{conn: &connection{caller: c}}}, &turn{call: &call{conn: &connection{caller: c}}}
		if err := first.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		tooLong, err := proto.Marshal(&jobpolicyv1.DecideJobRequest{ConfirmedReleases: make([][]byte, maxEntries+1)})
		if err != nil {
			t.Fatal(err)
		}
		refused := make(chan error, 1)
		go func() { refused <- second.decode(t.Context(), tooLong, &jobpolicyv1.DecideJobRequest{}) }()
		synctest.Wait()
		select {
		case err := <-refused:
			t.Fatalf("measured without a turn: %v", err)
		default:
		}
		first.end()
		if err := <-refused; status.Code(err) != codes.InvalidArgument {
			t.Errorf("error = %v, want INVALID_ARGUMENT for the long list", err)
		}
		second.end()
	})
}
