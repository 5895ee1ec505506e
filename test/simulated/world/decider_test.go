package world

import (
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// No answer names a time that is later than the calendar, at any depth.
func TestJudgeFindsTimesBehindTheCalendar(t *testing.T) {
	last := timestamppb.New(time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC))
	late := timestamppb.New(last.AsTime().Add(1))
	cases := map[string]struct {
		answer proto.Message
		wrong  bool
	}{
		"no time":              {answer: &jobpolicyv1.DecideJobResponse{RequestId: "a"}},
		"the last moment":      {answer: &jobpolicyv1.DecideJobResponse{RequeueTime: last}},
		"the next one":         {answer: &jobpolicyv1.DecideJobResponse{RequeueTime: late}, wrong: true},
		"one that overflows":   {answer: &jobpolicyv1.DecideCronJobResponse{RequeueTime: &timestamppb.Timestamp{Seconds: math.MaxInt64}}, wrong: true},
		"in a list":            {answer: &jobpolicyv1.DecideJobResponse{Explanation: &jobpolicyv1.Explanation{Waits: []*jobpolicyv1.Wait{{Until: late}, {Until: last}}}}, wrong: true},
		"in a list, but valid": {answer: &jobpolicyv1.DecideJobResponse{Explanation: &jobpolicyv1.Explanation{Waits: []*jobpolicyv1.Wait{{Until: last}}}}},
		"of a status":          {answer: &jobpolicyv1.DecideJobResponse{Status: &jobpolicyv1.JobStatus{StartTime: late}}, wrong: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if wrong := laterThanTheCalendar(tc.answer.ProtoReflect()); (wrong != nil) != tc.wrong {
				t.Errorf("found %v, want one: %t", wrong, tc.wrong)
			}
		})
	}
}
