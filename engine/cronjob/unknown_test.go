package cronjob_test

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine/cronjob"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A newer caller's fields that may be ignored change no decision: they are no reason to
// write a status. A status that is written keeps them, because it replaces the whole last
// one.
func TestIgnorableFieldsOfTheStatusAreKept(t *testing.T) {
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 1)
	req := newCluster().req
	req.Spec.Suspend = true
	req.Jobs = []*jobpolicyv1.OwnedJob{{Uid: uid("j"), Name: "j", Outcome: outcomeActive, ScheduledTime: req.GetNow()}}
	req.Status = &jobpolicyv1.CronJobStatus{
		LastScheduleTime: req.GetNow(), Active: []*jobpolicyv1.ActiveJob{{Uid: uid("j"), Name: "j"}},
	}
	req.Status.ProtoReflect().SetUnknown(unknown)
	req.Status.Active[0].ProtoReflect().SetUnknown(unknown)
	resp, err := cronjob.Decide(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.GetStatus() != nil {
		t.Errorf("the status is written without need: %v", resp.GetStatus())
	}
	req.Jobs = append(req.Jobs, &jobpolicyv1.OwnedJob{Uid: uid("k"), Name: "k", Outcome: outcomeActive, ScheduledTime: req.GetNow()})
	if resp, err = cronjob.Decide(req); err != nil {
		t.Fatal(err)
	}
	if len(resp.GetStatus().GetActive()) != 2 {
		t.Fatalf("status = %v, want one with two active Jobs", resp.GetStatus())
	}
	for _, m := range []proto.Message{resp.GetStatus(), resp.GetStatus().GetActive()[0]} {
		if got := m.ProtoReflect().GetUnknown(); !bytes.Equal(got, unknown) {
			t.Errorf("unknown fields of %T: %x, want %x", m, got, unknown)
		}
	}
}
