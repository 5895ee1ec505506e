package waits_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine/internal/waits"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

var now = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

func until(seconds int) *jobpolicyv1.Wait {
	return &jobpolicyv1.Wait{Until: timestamppb.New(now.Add(time.Duration(seconds) * time.Second))}
}

func TestTheRequeueTimeIsTheEarliestOneToCome(t *testing.T) {
	forAnEvent := &jobpolicyv1.Wait{}
	cases := map[string]struct {
		list waits.List
		want *jobpolicyv1.Wait // the wait that ends first
	}{
		"nothing":                   {want: forAnEvent},
		"no wait ends by itself":    {list: waits.List{forAnEvent}, want: forAnEvent},
		"all times have passed":     {list: waits.List{until(-5), until(0)}, want: forAnEvent},
		"the earliest stands later": {list: waits.List{until(9), forAnEvent, until(7), until(-5), until(8)}, want: until(7)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.list.RequeueTime(now); got.String() != tc.want.GetUntil().String() {
				t.Errorf("requeue time = %v, want %v", got, tc.want.GetUntil())
			}
		})
	}
}

// A caller may change what it gets.
func TestTheRequeueTimeIsACopy(t *testing.T) {
	w := until(7)
	waits.List{w}.RequeueTime(now).Seconds = 0
	if w.GetUntil().GetSeconds() == 0 {
		t.Error("the wait has changed with the requeue time")
	}
}
