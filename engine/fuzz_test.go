package engine_test

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// FuzzDecideJob feeds bytes as they may arrive over the wire. Whatever they
// are, the engine does not panic, and it answers with a decision that keeps
// its promises or with one of its two errors.
func FuzzDecideJob(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("garbage"))
	for _, seed := range seeds(f) {
		f.Add(wireBytes(f, seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		req := &request{}
		if proto.Unmarshal(data, req) != nil {
			return
		}
		decideSafely(t, req)
	})
}

// FuzzDecideJobFields makes a valid request of the bytes, so that the fuzzer
// gets deep into the engine. The request need not make sense: counts, rows and
// conditions contradict each other as much as the contract allows.
func FuzzDecideJobFields(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(keepsPromises))
}

func TestDecisionsKeepPromises(t *testing.T) {
	rapid.Check(t, keepsPromises)
}

func keepsPromises(t *rapid.T) {
	req := drawRequest(t)
	resp := decideSafely(t, req)
	if resp == nil {
		t.Fatalf("refused:\n%s", render(req))
	}
	again, err := engine.DecideJob(shuffled(t, req))
	if err != nil || string(wireBytes(t, again)) != string(wireBytes(t, resp)) {
		t.Fatalf("I7: other order of rows, other answer: %v", err)
	}
}

// seeds are requests that reach every part of the engine.
func seeds(f *testing.F) []*request {
	list := []*request{validRequest(f), steady(f, 3), withFinished(steady(f, 3), 20), scaleDown(f, 8)}
	huge := newScene()
	huge.mustTell(f, "job mode=Indexed completions=2147483647 parallelism=2147483647\nsettings maxChanges=100000 maxUncounted=100000\n"+
		"status start=0s completed=0-2147483645 active=2147483647 succeeded=2147483647 failed=2147483647\npods active=2147483647 restarts=2147483647")
	list = append(list, huge.req)
	for _, declared := range []string{criteriaMet, failureTarget, complete, suspended} {
		s := newScene()
		s.mustTell(f, "job completions=1\nstatus start=0s uncountedFailed=a\ncondition "+declared+"\nfinished b phase=Failed\nrow c\npods active=1")
		list = append(list, s.req)
	}
	return list
}

// decideSafely decides and checks what must hold of any answer.
func decideSafely(t rapid.TB, req *request) *jobpolicyv1.DecideJobResponse {
	before := proto.CloneOf(req)
	resp, err := engine.DecideJob(req)
	if !proto.Equal(before, req) {
		t.Errorf("the request was changed:\n%s", render(req))
	}
	if err != nil {
		var invalid *engine.InvalidRequestError
		var unsupported *engine.UnsupportedError
		if resp != nil || (!errors.As(err, &invalid) && !errors.As(err, &unsupported)) {
			t.Errorf("DecideJob = %v, %v", resp, err)
		}
		if invalid != nil && len(invalid.Violations) == 0 {
			t.Errorf("invalid, but not why")
		}
		return nil
	}
	if broken := brokenPromises(req, resp); len(broken) > 0 {
		t.Errorf("%v\nrequest:\n%s\nresponse:\n%s", broken, render(req), render(resp))
	}
	again, err := engine.DecideJob(req)
	if err != nil || string(wireBytes(t, again)) != string(wireBytes(t, resp)) {
		t.Errorf("I7: another answer to the same request: %v", err)
	}
	return resp
}
