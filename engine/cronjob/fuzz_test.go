package cronjob_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/cronjob"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// FuzzDecide feeds bytes as they may arrive over the wire.
func FuzzDecide(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("garbage"))
	for _, text := range []string{"*/5 * * * *", "@every 7s", "TZ=0", "0 0 31 2 *", "CRON_TZ=Asia/Tokyo @daily"} {
		c := newCluster()
		c.mustTell(f, "schedule "+text, "now 2026-03-01T00:00:00Z", "job a start=2026-01-01T00:00:00Z", "status active=a,b", "absent b")
		f.Add(wireBytes(f, c.req))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		req := &jobpolicyv1.DecideCronJobRequest{}
		if proto.Unmarshal(data, req) == nil {
			decideSafely(t, req)
		}
	})
}

// FuzzDecideFields makes a valid request of the bytes. The request need not make sense.
func FuzzDecideFields(f *testing.F) { f.Fuzz(rapid.MakeFuzz(keepsPromises)) }

func TestDecisionsKeepPromises(t *testing.T) { rapid.Check(t, keepsPromises) }

func keepsPromises(t *rapid.T) {
	req := drawRequest(t)
	resp := decideSafely(t, req)
	if resp == nil {
		t.Fatalf("refused: %v", req)
	}
	other := proto.CloneOf(req)
	slices.Reverse(other.Jobs)
	slices.Reverse(other.GetGroup().GetClaims())
	again, err := cronjob.Decide(other)
	if err != nil || string(wireBytes(t, again)) != string(wireBytes(t, resp)) {
		t.Fatalf("I7: other order of rows, other answer: %v", err)
	}
}

// decideSafely decides and checks what must hold of any answer; nil if the
// request is refused.
func decideSafely(t rapid.TB, req *jobpolicyv1.DecideCronJobRequest) *jobpolicyv1.DecideCronJobResponse {
	before := proto.CloneOf(req)
	resp, err := cronjob.Decide(req)
	if !proto.Equal(before, req) {
		t.Errorf("the request was changed: %v", req)
	}
	if err != nil {
		var invalid *engine.InvalidRequestError
		var unsupported *engine.UnsupportedError
		if resp != nil || (!errors.As(err, &invalid) && !errors.As(err, &unsupported)) {
			t.Errorf("Decide() = %v, %v", resp, err)
		}
		return nil
	}
	if resp.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE {
		if broken := brokenPromises(req, resp); len(broken) > 0 {
			t.Errorf("%q\nrequest: %v\nresponse: %v", broken, req, resp)
		}
	}
	wireBytes(t, resp)
	return resp
}

func drawOptions(t *rapid.T) *jobpolicyv1.CronJobOptions {
	o := &jobpolicyv1.CronJobOptions{
		RepeatedHour:     jobpolicyv1.RepeatedHour(rapid.Int32Range(0, 3).Draw(t, "repeated")),
		SkippedHour:      jobpolicyv1.SkippedHour(rapid.Int32Range(0, 2).Draw(t, "skipped")),
		MissedBeforeEdit: jobpolicyv1.MissedBeforeEdit(rapid.Int32Range(0, 2).Draw(t, "edit")),
	}
	if rapid.Bool().Draw(t, "jitter") {
		o.StartJitterSeconds = proto.Int32(rapid.Int32Range(0, 3600).Draw(t, "seconds"))
	}
	if rapid.Bool().Draw(t, "stagger") {
		o.StaggerSeconds = proto.Int32(rapid.Int32Range(1, 86400).Draw(t, "window"))
	}
	if rapid.Bool().Draw(t, "suspends") {
		o.SuspendAfterFailures = proto.Int32(rapid.Int32Range(1, 7).Draw(t, "failures"))
	}
	if rapid.Bool().Draw(t, "grouped") {
		o.Group = &jobpolicyv1.RunGroup{Name: "etl", MaxActiveRuns: rapid.Int32Range(1, 4).Draw(t, "cap")}
	}
	return o
}

// drawGroup draws what is known of the others in a group.
func drawGroup(t *rapid.T, moment *rapid.Generator[*timestamppb.Timestamp]) *jobpolicyv1.RunGroupFacts {
	facts := &jobpolicyv1.RunGroupFacts{
		ActiveRuns: rapid.Int32Range(0, 4).Draw(t, "active"), MaxActiveRuns: rapid.Int32Range(0, 4).Draw(t, "smallest"),
		Undecided: rapid.SampledFrom([]int32{0, 0, 3}).Draw(t, "undecided"), OfCluster: rapid.Bool().Draw(t, "of the cluster"),
	}
	if rapid.Bool().Draw(t, "asked") {
		facts.RunNowSince = moment.Draw(t, "asked since")
	}
	for range rapid.IntRange(0, 3).Draw(t, "claims") {
		facts.Claims = append(facts.Claims, &jobpolicyv1.GroupClaim{
			CronJob: rapid.SampledFrom([]string{"a", "report", "z"}).Draw(t, "cron job"), Namespace: rapid.SampledFrom([]string{"a", "z"}).Draw(t, "namespace"),
			Since: moment.Draw(t, "waits since"), From: moment.Draw(t, "from"),
		})
	}
	return facts
}

func drawRequest(t *rapid.T) *jobpolicyv1.DecideCronJobRequest {
	moment := rapid.Custom(func(t *rapid.T) *timestamppb.Timestamp {
		if rapid.IntRange(0, 9).Draw(t, "far") == 0 {
			return &timestamppb.Timestamp{Seconds: rapid.Int64Range(-62135596800, 253402300799).Draw(t, "second"), Nanos: 1}
		}
		return &timestamppb.Timestamp{Seconds: 1_790_000_000 + rapid.Int64Range(0, 400_000).Draw(t, "second")}
	})
	maybe := rapid.Custom(func(t *rapid.T) *timestamppb.Timestamp {
		if rapid.Bool().Draw(t, "absent") {
			return nil
		}
		return moment.Draw(t, "time")
	})
	req := &jobpolicyv1.DecideCronJobRequest{
		Now: moment.Draw(t, "now"), CronJob: newCluster().req.CronJob,
		Spec: &jobpolicyv1.CronJobSpec{
			Schedule:     rapid.SampledFrom([]string{"* * * * *", "@every 90s", "0 2 * * *", "30 2 31 * 5", "0 0 31 2 *", "nonsense", "TZ=UTC @hourly"}).Draw(t, "schedule"),
			CreationTime: moment.Draw(t, "created"), ConcurrencyPolicy: jobpolicyv1.ConcurrencyPolicy(rapid.Int32Range(0, 3).Draw(t, "policy")),
			Suspend: rapid.Bool().Draw(t, "suspend"), Deleting: rapid.IntRange(0, 9).Draw(t, "deleting") == 0,
			Options: drawOptions(t),
		},
		Status: &jobpolicyv1.CronJobStatus{LastScheduleTime: maybe.Draw(t, "last"), LastSuccessfulTime: maybe.Draw(t, "successful")},
	}
	if until := maybe.Draw(t, "hold"); until != nil {
		req.Deferrals = []*jobpolicyv1.Deferral{{Step: jobpolicyv1.Step_STEP_CREATE_JOB, Until: until}}
	}
	if until := maybe.Draw(t, "hold asked"); until != nil {
		req.Deferrals = append(req.Deferrals, &jobpolicyv1.Deferral{Step: jobpolicyv1.Step_STEP_CREATE_MANUAL_JOB, Until: until})
	}
	if rapid.Bool().Draw(t, "limits") {
		req.Spec.StartingDeadlineSeconds = proto.Int64(rapid.Int64().Draw(t, "deadline"))
		req.Spec.SuccessfulJobsHistoryLimit = proto.Int32(rapid.Int32Range(-2, 3).Draw(t, "success"))
		req.Spec.FailedJobsHistoryLimit = proto.Int32(rapid.Int32Range(-2, 3).Draw(t, "failed"))
	}
	req.Spec.RunNow = rapid.SampledFrom([]string{"", "1", "please"}).Draw(t, "asked")
	req.Spec.OptionProblems = rapid.SampledFrom([][]string{nil, {"cronJob: it cannot be read"}}).Draw(t, "problems")
	req.Spec.FailuresCountedUntil = maybe.Draw(t, "counted")
	if since := maybe.Draw(t, "since"); since != nil {
		req.Spec.ObservedSchedule = &jobpolicyv1.ObservedSchedule{Since: since, Schedule: rapid.SampledFrom([]string{"", "- * * * * *"}).Draw(t, "seen")}
	}
	if rapid.Bool().Draw(t, "others") {
		req.Group = drawGroup(t, moment)
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "jobs") {
		job := &jobpolicyv1.OwnedJob{
			Uid: numberedUID(uint64(i)), Name: fmt.Sprintf("j%d", rapid.IntRange(0, 3).Draw(t, "name")),
			Outcome:   jobpolicyv1.JobOutcome(rapid.Int32Range(1, 3).Draw(t, "outcome")),
			StartTime: maybe.Draw(t, "start"), FinishTime: maybe.Draw(t, "finish"), CompletionTime: maybe.Draw(t, "completion"),
			ScheduledTime: maybe.Draw(t, "scheduled"), Deleting: rapid.Bool().Draw(t, "going"),
		}
		req.Jobs = append(req.Jobs, job)
		if rapid.Bool().Draw(t, "listed") {
			req.Status.Active = append(req.Status.Active, &jobpolicyv1.ActiveJob{Uid: job.Uid, Name: job.Name})
		}
	}
	return req
}
