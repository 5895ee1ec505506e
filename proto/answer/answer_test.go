package answer

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		change func(*jobpolicyv1.DecideJobResponse)
		want   string
	}{
		"an answer to carry out":   {func(*jobpolicyv1.DecideJobResponse) {}, ""},
		"an answer to another":     {func(d *jobpolicyv1.DecideJobResponse) { d.RequestId = "8" }, `asked "7", got the answer to "8"`},
		"no disposition":           {func(d *jobpolicyv1.DecideJobResponse) { d.Disposition = 0 }, "disposition DISPOSITION_UNSPECIFIED is unknown"},
		"an unknown disposition":   {func(d *jobpolicyv1.DecideJobResponse) { d.Disposition = 99 }, "disposition 99 is unknown"},
		"an unknown field":         {func(d *jobpolicyv1.DecideJobResponse) { addField(d, 99) }, "99 is the number of an unknown field"},
		"a field that is ignored":  {func(d *jobpolicyv1.DecideJobResponse) { addField(d, 1000) }, ""},
		"an unknown follow-up":     {func(d *jobpolicyv1.DecideJobResponse) { d.FollowUp = 99 }, ""},
		"an unknown delete reason": {func(d *jobpolicyv1.DecideJobResponse) { d.Delete = []*jobpolicyv1.DeletePod{{Reason: 99}} }, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			decision := &jobpolicyv1.DecideJobResponse{RequestId: "7", Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY}
			tc.change(decision)
			got := ""
			if err := Check(&jobpolicyv1.DecideJobRequest{RequestId: "7"}, decision); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A CronJob's decision that creates a Job is refused as long as the request leaves that
// for later.
func TestCheckDeferredCreationOfAJob(t *testing.T) {
	now := timestamppb.Now()
	later := timestamppb.New(now.AsTime().Add(1))
	create := &jobpolicyv1.CreateJob{Name: "run"}
	scheduled := &jobpolicyv1.CreateJob{Name: "run", ScheduledTime: now}
	cases := map[string]struct {
		step    jobpolicyv1.Step
		until   *timestamppb.Timestamp
		create  *jobpolicyv1.CreateJob
		refused bool
	}{
		"it creates the Job":                   {jobpolicyv1.Step_STEP_CREATE_JOB, later, create, true},
		"it creates the Job when it may":       {jobpolicyv1.Step_STEP_CREATE_JOB, now, create, false},
		"another step is left for later":       {jobpolicyv1.Step_STEP_CREATE_PODS, later, create, false},
		"it creates nothing":                   {jobpolicyv1.Step_STEP_CREATE_JOB, later, nil, false},
		"it creates a Job that was asked for":  {jobpolicyv1.Step_STEP_CREATE_MANUAL_JOB, later, create, true},
		"the Job that it creates is scheduled": {jobpolicyv1.Step_STEP_CREATE_MANUAL_JOB, later, scheduled, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			request := &jobpolicyv1.DecideCronJobRequest{Now: now, Deferrals: []*jobpolicyv1.Deferral{{Step: tc.step, Until: tc.until}}}
			decision := &jobpolicyv1.DecideCronJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY, Create: tc.create}
			if err := Check(request, decision); (err != nil) != tc.refused {
				t.Errorf("err = %v, want refused: %v", err, tc.refused)
			}
		})
	}
}

func addField(d *jobpolicyv1.DecideJobResponse, number protowire.Number) {
	d.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), 1))
}
