package policyserver

import (
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// To measure a large message takes a processor as long as to decode a small one, so a caller
// that has no turn does not measure.
func TestAMessageIsMeasuredInItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCaller("caller", "caller", newPools(Config{MaxConcurrentCalls: 2, MaxOpenCalls: 2, MemoryLimit: MinMemoryLimit})) // one of one caller
		first, second := &turn{call: &call{conn: &connection{caller: c}}}, &turn{call: &call{conn: &connection{caller: c}}}
		if err := first.takeProcessor(t.Context()); err != nil {
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
