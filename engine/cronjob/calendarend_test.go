package cronjob_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine/cronjob"
)

// No decision names a time that a Timestamp cannot hold: the last one is
// 9999-12-31T23:59:59.999999999Z.
func TestNoTimeIsBehindTheEndOfTheCalendar(t *testing.T) {
	cases := map[string][]string{
		"a run with jitter, found by drawing": {
			"schedule * * * * *", "option start_jitter_seconds 3600", "now 9999-12-31T23:59:59.000000001Z",
		},
		"a run with stagger": {
			"schedule * * * * *", "option stagger_seconds 86400", "now 9999-12-31T23:59:59.000000001Z",
		},
		"an interval": {
			"schedule @every 90s", "option start_jitter_seconds 3600", "now 9999-12-31T23:59:59.000000001Z",
		},
		"a run in a zone whose clocks are ahead": {
			"schedule @every 90s", "zone Asia/Tokyo", "now 9999-12-31T23:59:59.999999999Z",
		},
		"the last moment, with a wait": {
			"schedule @every 90s", "defercreations 9999-12-31T23:59:59.999999999Z", "now 9999-12-31T23:59:59.999999999Z",
		},
	}
	for name, lines := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster().mustTell(t, "cronjob")
			c.req.Spec.CreationTime = timestamp("9999-12-31T00:00:00Z")
			for _, deadline := range []*int64{nil, proto.Int64(0), proto.Int64(1 << 36), proto.Int64(1<<63 - 1)} {
				c.mustTell(t, lines...)
				c.req.Spec.StartingDeadlineSeconds = deadline
				decideSafely(t, c.req)
			}
		})
	}
}

// RFC 3339 has no year of five digits, and the run is known again by its time.
func TestTheLastRunOfTheCalendarIsKnownAgain(t *testing.T) {
	c := newCluster().mustTell(t, "schedule * * * * *", "zone Asia/Tokyo", "now 9999-12-31T23:59:59Z")
	c.req.Spec.CreationTime = timestamp("9999-12-31T23:58:00Z")
	resp, err := cronjob.Decide(c.req)
	if err != nil {
		t.Fatal(err)
	}
	create := resp.GetCreate()
	zone := time.FixedZone("", int(create.GetUtcOffsetSeconds()))
	if got, want := create.GetScheduledTime().AsTime().In(zone).Format(time.RFC3339), "9999-12-31T23:59:00Z"; got != want {
		t.Errorf("the run of %q, want %q", got, want)
	}
}

// Jitter must not delay the last run of the calendar until after its end: then it would never
// start.
func TestJitterLeavesTheLastRunOfTheCalendarTimeToStart(t *testing.T) {
	c := newCluster().mustTell(t, "schedule * * * * *", "option start_jitter_seconds 3600", "now 9999-12-31T23:59:59Z")
	c.req.Spec.CreationTime = timestamp("9999-12-31T23:58:00Z")
	resp, err := cronjob.Decide(c.req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.GetCreate() == nil {
		t.Errorf("the run of 23:59 has not started in the last second of the calendar: %v", resp)
	}
}
