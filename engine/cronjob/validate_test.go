package cronjob_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/cronjob"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

type request = jobpolicyv1.DecideCronJobRequest

// never is behind the end of the calendar.
var never = &timestamppb.Timestamp{Seconds: 1 << 60}

// withJob is a request with one Job.
func withJob(change func(*jobpolicyv1.OwnedJob)) func(*request) {
	return func(r *request) {
		j := &jobpolicyv1.OwnedJob{Uid: uid("j"), Name: "j", Outcome: outcomeActive}
		change(j)
		r.Jobs = []*jobpolicyv1.OwnedJob{j}
	}
}

// invalidRequests are mistakes in a valid request, and the fields that are named for them.
var invalidRequests = map[string]struct {
	change func(*request)
	fields []string
}{
	"nothing at all":             {change: func(r *request) { proto.Reset(r) }, fields: []string{"now", "cron_job", "spec"}},
	"no time":                    {change: func(r *request) { r.Now = nil }, fields: []string{"now"}},
	"no CronJob":                 {change: func(r *request) { r.CronJob = nil }, fields: []string{"cron_job"}},
	"no spec":                    {change: func(r *request) { r.Spec = nil }, fields: []string{"spec"}},
	"a short UID":                {change: func(r *request) { r.CronJob.Uid = []byte("short") }, fields: []string{"cron_job.uid"}},
	"a long id":                  {change: func(r *request) { r.RequestId = strings.Repeat("x", 129) }, fields: []string{"request_id"}},
	"a time beyond the calendar": {change: func(r *request) { r.Now = never }, fields: []string{"now"}},
	"a CronJob of nothing": {
		change: func(r *request) { r.CronJob = &jobpolicyv1.CronJobRef{Generation: -1} },
		fields: []string{"cron_job.uid", "cron_job.namespace", "cron_job.name", "cron_job.generation"},
	},
	"a name too long for Jobs": {change: func(r *request) { r.CronJob.Name = strings.Repeat("x", 53) }, fields: []string{"cron_job.name"}},
	"no creation time":         {change: func(r *request) { r.Spec.CreationTime = nil }, fields: []string{"spec.creation_time"}},
	"texts without end": {
		change: func(r *request) {
			r.Spec.Schedule = strings.Repeat("*", 4097)
			r.Spec.TimeZone = proto.String(strings.Repeat("x", 257))
		},
		fields: []string{"spec.schedule", "spec.time_zone"},
	},
	"options beyond their limits": {
		change: func(r *request) {
			r.Spec.Options = &jobpolicyv1.CronJobOptions{StartJitterSeconds: proto.Int32(3601), SuspendAfterFailures: proto.Int32(0), StaggerSeconds: proto.Int32(86_401)}
		},
		fields: []string{"spec.options.start_jitter_seconds", "spec.options.suspend_after_failures", "spec.options.stagger_seconds"},
	},
	"a stagger of nothing": {
		change: func(r *request) { r.Spec.Options = &jobpolicyv1.CronJobOptions{StaggerSeconds: proto.Int32(0)} },
		fields: []string{"spec.options.stagger_seconds"},
	},
	"a group without a name and without room": {
		change: func(r *request) { r.Spec.Options = &jobpolicyv1.CronJobOptions{Group: &jobpolicyv1.RunGroup{}} },
		fields: []string{"spec.options.group.name", "spec.options.group.max_active_runs"},
	},
	"facts of a group that cannot be": {
		change: func(r *request) {
			r.Group = &jobpolicyv1.RunGroupFacts{ActiveRuns: -1, MaxActiveRuns: -1, Undecided: -1, Claims: []*jobpolicyv1.GroupClaim{nil, {CronJob: "a", Since: never, From: never}}}
		},
		fields: []string{
			"group.active_runs", "group.max_active_runs", "group.undecided", "group.claims[0].cron_job", "group.claims[0].from",
			"group.claims[1].since", "group.claims[1].from",
		},
	},
	"a group of the cluster whose others are of no namespace": {
		change: func(r *request) {
			r.Group = &jobpolicyv1.RunGroupFacts{OfCluster: true, RunNowSince: never, Claims: []*jobpolicyv1.GroupClaim{
				{CronJob: "a", From: r.Now}, {CronJob: "a", Namespace: strings.Repeat("n", 254), From: r.Now},
			}}
		},
		fields: []string{"group.run_now_since", "group.claims[0].namespace", "group.claims[1].namespace"},
	},
	"more places in the line than there may be": {
		change: func(r *request) {
			r.Group = &jobpolicyv1.RunGroupFacts{Claims: make([]*jobpolicyv1.GroupClaim, 10_001)}
		},
		fields: []string{"group.claims"},
	},
	"problems of options without end": {
		change: func(r *request) { r.Spec.OptionProblems = []string{"", strings.Repeat("x", 1025)} },
		fields: []string{"spec.option_problems[0]", "spec.option_problems[1]"},
	},
	"more problems than are told": {
		change: func(r *request) { r.Spec.OptionProblems = make([]string, 11) },
		fields: []string{"spec.option_problems"},
	},
	"memory that no decision had": {
		change: func(r *request) {
			r.Spec.RunNow = strings.Repeat("x", 4097)
			r.Spec.ObservedSchedule = &jobpolicyv1.ObservedSchedule{Schedule: strings.Repeat("x", 4097)}
			r.Spec.FailuresCountedUntil = never
		},
		fields: []string{"spec.run_now", "spec.failures_counted_until", "spec.observed_schedule.since", "spec.observed_schedule.schedule"},
	},
	"a run that was asked for without end": {
		change: withJob(func(j *jobpolicyv1.OwnedJob) { j.RunNow = strings.Repeat("x", 4097) }),
		fields: []string{"jobs[0].run_now"},
	},
	"a caller's zone that is none": {change: func(r *request) { r.Spec.LocalTimeZone = "Local" }, fields: []string{"spec.local_time_zone"}},
	"a zone that nobody knows":     {change: func(r *request) { r.Spec.LocalTimeZone = "Nowhere" }, fields: []string{"spec.local_time_zone"}},
	"times in the status": {
		change: func(r *request) {
			r.Status = &jobpolicyv1.CronJobStatus{LastScheduleTime: never, LastSuccessfulTime: never}
		},
		fields: []string{"status.last_schedule_time", "status.last_successful_time"},
	},
	"an active Job of nothing": {
		change: func(r *request) { r.Status.Active = []*jobpolicyv1.ActiveJob{nil} },
		fields: []string{"status.active[0].uid", "status.active[0].name"},
	},
	"a Job of nothing": {
		change: func(r *request) { r.Jobs = []*jobpolicyv1.OwnedJob{nil} },
		fields: []string{"jobs[0].uid", "jobs[0].name", "jobs[0].outcome"},
	},
	"a Job without an outcome": {change: withJob(func(j *jobpolicyv1.OwnedJob) { j.Outcome = 0 }), fields: []string{"jobs[0].outcome"}},
	"a Job that ends beyond all times": {
		change: withJob(func(j *jobpolicyv1.OwnedJob) { j.FinishTime, j.ScheduledTime = never, never }),
		fields: []string{"jobs[0].finish_time", "jobs[0].scheduled_time"},
	},
	"a UID in two rows": {
		change: func(r *request) { withJob(func(*jobpolicyv1.OwnedJob) {})(r); r.Jobs = append(r.Jobs, r.Jobs[0]) },
		fields: []string{"jobs[1].uid"},
	},
	"an absent Job with a row": {
		change: func(r *request) { withJob(func(*jobpolicyv1.OwnedJob) {})(r); r.AbsentJobs = [][]byte{uid("j"), {1}} },
		fields: []string{"absent_jobs[0]", "absent_jobs[1]"},
	},
	"too many Jobs":        {change: func(r *request) { r.Jobs = make([]*jobpolicyv1.OwnedJob, 10_001) }, fields: []string{"jobs"}},
	"too many absent Jobs": {change: func(r *request) { r.AbsentJobs = make([][]byte, 10_001) }, fields: []string{"absent_jobs"}},
	"too many active Jobs": {change: func(r *request) { r.Status.Active = make([]*jobpolicyv1.ActiveJob, 10_001) }, fields: []string{"status.active"}},
	"names that are taken: one too long, one empty": {
		change: func(r *request) { r.NamesTaken = []string{"x", strings.Repeat("x", 254), ""} },
		fields: []string{"names_taken[1]", "names_taken[2]"},
	},
	"too many names that are taken": {
		change: func(r *request) { r.NamesTaken = slices.Repeat([]string{"x"}, 11) }, fields: []string{"names_taken"},
	},
	"a hold that never ends": {
		change: func(r *request) {
			r.Deferrals = []*jobpolicyv1.Deferral{{Step: jobpolicyv1.Step_STEP_CREATE_JOB, Until: never}}
		},
		fields: []string{"deferrals[0].until"},
	},
	"more steps put off than there may be": {
		change: func(r *request) { r.Deferrals = make([]*jobpolicyv1.Deferral, 101) }, fields: []string{"deferrals"},
	},
}

func TestInvalidRequests(t *testing.T) {
	var refused caseFile
	defer func() { refused.check(t, "invalid_requests") }()
	for _, name := range slices.Sorted(maps.Keys(invalidRequests)) {
		tc := invalidRequests[name]
		t.Run(name, func(t *testing.T) {
			req := newCluster().req
			if _, err := cronjob.Decide(req); err != nil {
				t.Fatalf("refused before it is spoilt: %v", err)
			}
			tc.change(req)
			resp, err := cronjob.Decide(req)
			refused.refuse(req, tc.fields[0])
			var invalid *engine.InvalidRequestError
			if !errors.As(err, &invalid) {
				t.Fatalf("Decide() = %v, %v, want *engine.InvalidRequestError", resp, err)
			}
			var got []string
			for _, v := range invalid.Violations {
				got = append(got, v.Field)
			}
			if diff := cmp.Diff(tc.fields, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

func TestViolationsAreListedUpToALimit(t *testing.T) {
	req := newCluster().req
	req.Jobs = make([]*jobpolicyv1.OwnedJob, 10_000)
	_, err := cronjob.Decide(req)
	var invalid *engine.InvalidRequestError
	if !errors.As(err, &invalid) || len(invalid.Violations) != 100 {
		t.Errorf("%d violations, want 100", len(invalid.Violations))
	}
}

func TestUnknownsAreUnsupported(t *testing.T) {
	for field, change := range map[string]func(*request){
		"spec.creation_time.2047": func(r *request) {
			r.Spec.CreationTime.ProtoReflect().SetUnknown([]byte("\xfa\x7f\x01x")) // number 2047, one byte
		},
		"spec.concurrency_policy": func(r *request) { r.Spec.ConcurrencyPolicy = 4 },
		"jobs[0].outcome":         func(r *request) { r.Jobs = []*jobpolicyv1.OwnedJob{{Outcome: 4}} },
		"explain":                 func(r *request) { r.Explain = 9 },
	} {
		req := newCluster().req
		change(req)
		_, err := cronjob.Decide(req)
		var unsupported *engine.UnsupportedError
		if !errors.As(err, &unsupported) || unsupported.Field != field {
			t.Errorf("error = %v, want *engine.UnsupportedError of %s", err, field)
		}
	}
}

// The contract lists the rules of Jobs, then those of CronJobs, in the order in
// which they are asked, if only the last one decides or none does.
func TestContractListsTheRules(t *testing.T) {
	var listed []string
	values := jobpolicyv1.Rule_RULE_UNSPECIFIED.Descriptor().Values()
	for i := range values.Len() {
		if rule := jobpolicyv1.Rule(values.Get(i).Number()); rule != jobpolicyv1.Rule_RULE_UNSPECIFIED {
			listed = append(listed, rule.Name())
		}
	}
	cronJob := newCluster().mustTell(t, "now 2026-01-01T01:00:00Z").req
	due, err := cronjob.Decide(cronJob)
	if err != nil {
		t.Fatal(err)
	}
	running, err := engine.DecideJob(&jobpolicyv1.DecideJobRequest{
		Now: cronJob.GetNow(), Job: &jobpolicyv1.JobRef{Uid: uid("job"), Name: "job"}, Spec: &jobpolicyv1.JobSpec{Parallelism: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	for _, a := range slices.Concat(running.GetExplanation().GetRules(), due.GetExplanation().GetRules()) {
		asked = append(asked, a.GetRule().Name())
	}
	if diff := cmp.Diff(asked, listed); diff != "" {
		t.Errorf("rules (-asked +in the contract):\n%s", diff)
	}
}

// What a decision records is part of the next request and must not make it invalid. The engine recognizes the schedule that it has observed, however long it is.
func TestAnObservedScheduleOfAnyLengthIsKnown(t *testing.T) {
	for _, length := range []int{4000, 4096} {
		req := newCluster().req
		req.Spec.Schedule = "0" + strings.Repeat(",0", (length-9)/2) + " * * * *"
		req.Spec.Options = &jobpolicyv1.CronJobOptions{MissedBeforeEdit: jobpolicyv1.MissedBeforeEdit_MISSED_BEFORE_EDIT_SKIP}
		first, err := cronjob.Decide(req)
		if err != nil {
			t.Fatal(err)
		}
		seen := first.GetEdits().GetObservedSchedule()
		if seen == nil {
			t.Fatalf("the first decision keeps nothing of a schedule of %d bytes", length)
		}
		req.Spec.ObservedSchedule = seen
		second, err := cronjob.Decide(req)
		if err != nil {
			t.Fatalf("a schedule of %d bytes: %v", length, err)
		}
		if again := second.GetEdits().GetObservedSchedule(); again != nil {
			t.Errorf("a schedule of %d bytes is taken for another one: %v", length, again)
		}
	}
}
