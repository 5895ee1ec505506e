package cronjob_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"jobpolicy.dev/engine/cronjob"
	"jobpolicy.dev/engine/zone"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A plan is a schedule, and what a person takes it to mean.
type plan struct {
	text string
	is   func(local time.Time) bool
}

var plans = []plan{
	{text: "* * * * *", is: func(time.Time) bool { return true }},
	{text: "*/15 * * * *", is: func(t time.Time) bool { return t.Minute()%15 == 0 }},
	{text: "30 2 * * *", is: func(t time.Time) bool { return t.Hour() == 2 && t.Minute() == 30 }},
	{
		text: "0 0 1,15 * sun",
		is: func(t time.Time) bool {
			return t.Hour() == 0 && t.Minute() == 0 && (t.Day() == 1 || t.Day() == 15 || t.Weekday() == time.Sunday)
		},
	},
	{
		text: "30 6-16/4 * * 1-5",
		is: func(t time.Time) bool {
			return t.Minute() == 30 && (t.Hour() == 6 || t.Hour() == 10 || t.Hour() == 14) && t.Weekday() != time.Sunday && t.Weekday() != time.Saturday
		},
	},
}

// A life is the life of a CronJob in a cluster. What the engine needs later is in the
// cluster's objects; what only the checks need is in the other fields.
type life struct {
	*cluster
	plan plan
	loc  *time.Location
	// started are the scheduled times of the runs that were created.
	started []time.Time
}

// TestLifeOfACronJob lets time pass and jump, users change objects and the caller crash.
// After each step it checks that no scheduled time was started twice or too early, that a
// due run was started unless something prevents it, and that the list of active runs is
// exact. At the end nothing is left to do until the next requeue time.
func TestLifeOfACronJob(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLife(t)
		t.Repeat(map[string]func(*rapid.T){
			"":                func(t *rapid.T) { l.decideOnly(t) },
			"wait":            l.wait,
			"jump":            l.jump,
			"a run ends":      l.runEnds,
			"a Job goes":      l.jobGoes,
			"a Job by hand":   l.jobByHand,
			"edit":            l.edit,
			"suspend":         func(t *rapid.T) { l.req.Spec.Suspend = rapid.Bool().Draw(t, "suspend") },
			"run now":         l.runNow,
			"creation fails":  l.hold,
			"crash in a step": l.crash,
			"settle":          l.settle,
		})
	})
}

func newLife(t *rapid.T) *life {
	l := &life{cluster: newCluster()}
	spec := l.req.Spec
	spec.CreationTime = timestamppb.New(rapid.SampledFrom([]time.Time{
		timestamp("2026-03-27T11:59:30Z").AsTime(), timestamp("2026-10-23T11:59:30Z").AsTime(),
	}).Draw(t, "created"))
	l.req.Now = proto.CloneOf(spec.CreationTime)
	spec.ConcurrencyPolicy = jobpolicyv1.ConcurrencyPolicy(rapid.Int32Range(0, 3).Draw(t, "policy"))
	spec.SuccessfulJobsHistoryLimit = proto.Int32(rapid.Int32Range(0, 2).Draw(t, "success"))
	spec.FailedJobsHistoryLimit = proto.Int32(rapid.Int32Range(0, 2).Draw(t, "failed"))
	if rapid.Bool().Draw(t, "limited") {
		spec.StartingDeadlineSeconds = proto.Int64(rapid.Int64Range(0, 900).Draw(t, "deadline"))
	}
	l.edit(t)
	return l
}

func (l *life) edit(t *rapid.T) {
	l.plan = rapid.SampledFrom(plans).Draw(t, "plan")
	name := rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Havana"}).Draw(t, "zone")
	l.req.Spec.Schedule, l.req.Spec.TimeZone = l.plan.text, proto.String(name)
	var err error
	if l.loc, err = zone.Load(name); err != nil {
		t.Fatal(err)
	}
	l.req.Spec.Options.StaggerSeconds = rapid.SampledFrom([]*int32{nil, proto.Int32(45), proto.Int32(3600), proto.Int32(86_400)}).Draw(t, "stagger")
	l.req.Spec.Options.MaxMissedRuns = rapid.SampledFrom([]*int32{nil, proto.Int32(0), proto.Int32(1), proto.Int32(3)}).Draw(t, "missed")
	if l.req.Spec.GetConcurrencyPolicy() == jobpolicyv1.ConcurrencyPolicy_CONCURRENCY_POLICY_FORBID && l.req.Spec.Options.MaxMissedRuns != nil {
		l.req.Spec.Options.MaxMissedRuns = proto.Int32(max(1, l.req.Spec.Options.GetMaxMissedRuns())) // Scenarios show what waits.
	}
}

func (l *life) advance(d time.Duration) { l.req.Now = timestamppb.New(l.now().Add(d)) }

func (l *life) wait(t *rapid.T) {
	l.advance(time.Duration(rapid.Int64Range(1, int64(4*time.Hour)).Draw(t, "wait")))
}

func (l *life) jump(t *rapid.T) {
	l.advance(time.Duration(rapid.IntRange(-72, 72).Draw(t, "hours")) * time.Hour)
	l.forget()
}

// forget drops the runs whose time has not come yet by the present clock and whose Jobs
// are gone: nothing in the cluster shows that they were started.
func (l *life) forget() {
	l.started = slices.DeleteFunc(l.started, func(at time.Time) bool {
		return at.After(l.now()) && !slices.ContainsFunc(l.req.Jobs, func(job *jobpolicyv1.OwnedJob) bool {
			return job.GetScheduledTime() != nil && job.GetScheduledTime().AsTime().Equal(at)
		})
	})
}

// newest is the latest started time that is not in the future. After the clock was set
// back, the schedule begins anew.
func (l *life) newest() time.Time {
	var newest time.Time
	for _, at := range l.started {
		if at.After(newest) && !at.After(l.now()) {
			newest = at
		}
	}
	return newest
}

// early reports whether a time has not come.
func (l *life) early(at *timestamppb.Timestamp) bool { return at != nil && at.AsTime().After(l.now()) }

func (l *life) someJob(t *rapid.T, is func(*jobpolicyv1.OwnedJob) bool) *jobpolicyv1.OwnedJob {
	jobs := slices.DeleteFunc(slices.Clone(l.req.Jobs), func(job *jobpolicyv1.OwnedJob) bool { return !is(job) })
	if len(jobs) == 0 {
		return nil
	}
	return jobs[rapid.IntRange(0, len(jobs)-1).Draw(t, "job")]
}

func (l *life) runEnds(t *rapid.T) {
	job := l.someJob(t, func(job *jobpolicyv1.OwnedJob) bool { return job.GetOutcome() == outcomeActive })
	if job != nil {
		l.finish(job, l.now(), rapid.Bool().Draw(t, "fails"))
	}
}

// jobGoes deletes a Job, unless only that Job shows that its run was started.
func (l *life) jobGoes(t *rapid.T) {
	known := l.req.GetStatus().GetLastScheduleTime().AsTime()
	gone := l.someJob(t, func(job *jobpolicyv1.OwnedJob) bool { return !job.GetScheduledTime().AsTime().After(known) })
	if gone != nil {
		l.remove(func(job *jobpolicyv1.OwnedJob) bool { return job == gone })
	}
}

func (l *life) jobByHand(*rapid.T) {
	l.created++
	l.req.Jobs = append(l.req.Jobs, &jobpolicyv1.OwnedJob{
		Uid: numberedUID(l.created), Name: fmt.Sprintf("by-hand-%d", l.created), Outcome: outcomeActive,
	})
}

func (l *life) runNow(t *rapid.T) {
	l.req.Spec.RunNow = rapid.StringMatching("[a-z]{1,3}").Draw(t, "text")
}

func (l *life) hold(t *rapid.T) {
	step := rapid.SampledFrom([]jobpolicyv1.Step{jobpolicyv1.Step_STEP_CREATE_JOB, jobpolicyv1.Step_STEP_CREATE_MANUAL_JOB}).Draw(t, "step")
	l.leave(step, timestamppb.New(l.now().Add(time.Duration(rapid.IntRange(0, 900).Draw(t, "hold"))*time.Second)))
}

// decideOnly decides and checks, and carries nothing out.
func (l *life) decideOnly(t *rapid.T) *jobpolicyv1.DecideCronJobResponse {
	resp, err := l.decide()
	if err != nil {
		t.Fatal(err)
	}
	if broken := brokenPromises(l.req, resp); len(broken) > 0 {
		t.Fatalf("%q\n%s", broken, render(resp, true))
	}
	again := proto.CloneOf(l.req)
	slices.Reverse(again.Jobs)
	same, err := cronjob.Decide(again)
	if err != nil || !bytes.Equal(wireBytes(t, same), wireBytes(t, resp)) {
		t.Fatalf("I7: other order of rows, other answer: %v", err)
	}
	if !statusFirst(l.req, resp) {
		l.checkStart(t, resp)
	}
	return resp
}

// statusFirst reports whether a status has to be written before a run may
// replace others: nothing else would remember them.
func statusFirst(req *jobpolicyv1.DecideCronJobRequest, resp *jobpolicyv1.DecideCronJobResponse) bool {
	return resp.GetStatus() != nil && req.Spec.GetConcurrencyPolicy() == jobpolicyv1.ConcurrencyPolicy_CONCURRENCY_POLICY_REPLACE &&
		!proto.Equal(resp.GetStatus().GetLastScheduleTime(), req.GetStatus().GetLastScheduleTime())
}

// step carries a decision out and remembers what was created.
func (l *life) step(resp *jobpolicyv1.DecideCronJobResponse) {
	if at := resp.GetCreate().GetScheduledTime(); at != nil {
		l.started = append(l.started, at.AsTime())
	}
	l.carryOut(resp)
	l.forget()
}

// settle carries out decisions until nothing is left to do. It fails after ten of them.
func (l *life) settle(t *rapid.T) {
	for range 10 {
		resp := l.decideOnly(t)
		if resp.GetDisposition() == jobpolicyv1.Disposition_DISPOSITION_SETTLED {
			l.checkSettled(t, resp)
			return
		}
		l.step(resp)
	}
	t.Fatal("not settled after 10 steps")
}

// crash carries out only the first part of a decision.
func (l *life) crash(t *rapid.T) {
	resp := l.decideOnly(t)
	part := proto.CloneOf(resp)
	part.Edits = nil
	if rapid.Bool().Draw(t, "before the creation") {
		part.Create = nil
	}
	l.step(part)
}

// due is the time of the schedule whose run is to start, found minute by minute: the oldest of the
// latest ones that is not too late, or the latest one. If the last run is ahead of the clock, the
// schedule begins anew.
func (l *life) due() (time.Time, bool) {
	after := l.req.GetSpec().GetCreationTime().AsTime()
	if last := l.req.GetStatus().GetLastScheduleTime(); last != nil {
		after = last.AsTime()
	}
	for _, job := range l.req.Jobs {
		if at := job.GetScheduledTime(); at != nil && !l.early(at) && at.AsTime().After(after) {
			after = at.AsTime()
		}
	}
	var due time.Time
	found, most := 0, l.maxMissed()
	for m := l.now().Truncate(time.Minute); m.After(after) && found < most; m = m.Add(-time.Minute) {
		if !l.plan.is(m.In(l.loc)) {
			continue
		}
		if found++; found == 1 || !l.late(l.start(m)) {
			due = m
		}
	}
	return due, found > 0
}

// maxMissed is how many times the due run is chosen of.
func (l *life) maxMissed() int {
	o := l.req.GetSpec().GetOptions()
	if o.MaxMissedRuns == nil || l.req.Spec.GetConcurrencyPolicy() == jobpolicyv1.ConcurrencyPolicy_CONCURRENCY_POLICY_REPLACE {
		return 1
	}
	return max(1, int(o.GetMaxMissedRuns()))
}

// late reports whether a run whose start was due then is too late.
func (l *life) late(start time.Time) bool {
	spec := l.req.GetSpec()
	by := l.now().Truncate(time.Second).Sub(start)
	missed := spec.GetOptions().MaxMissedRuns != nil && spec.GetOptions().GetMaxMissedRuns() == 0 && by > time.Minute
	return missed || spec.StartingDeadlineSeconds != nil && by > time.Duration(spec.GetStartingDeadlineSeconds())*time.Second
}

// start is when a run starts: at its time if no stagger is asked for. Every CronJob here has
// the same name, whose share of a window is known.
func (l *life) start(due time.Time) time.Time {
	window := l.req.GetSpec().GetOptions().GetStaggerSeconds()
	if window == 0 {
		return due
	}
	room := time.Minute
	for room < 25*time.Hour && !l.plan.is(due.Add(room).In(l.loc)) {
		room += time.Minute
	}
	most := min(int64(window), int64(room/time.Second)-10)
	return due.Add(time.Duration(shareOfReport*float64(most+1)) * time.Second)
}

// shareOfReport is SHA-256 of "ns/report" as a fraction of 1.
const shareOfReport = 0.4110327755436233

func (l *life) deferred(step jobpolicyv1.Step) bool {
	return slices.ContainsFunc(l.req.GetDeferrals(), func(d *jobpolicyv1.Deferral) bool {
		return d.GetStep() == step && d.GetUntil().AsTime().After(l.now())
	})
}

func (l *life) activeRuns() int {
	n := 0
	for _, job := range l.req.Jobs {
		if job.GetOutcome() == outcomeActive && (job.GetScheduledTime() != nil || job.GetRunNow() != "") {
			n++
		}
	}
	return n
}

// checkStart expects that a run is started if one is due and nothing prevents it, and
// only then.
func (l *life) checkStart(t *rapid.T, resp *jobpolicyv1.DecideCronJobResponse) {
	create, spec := resp.GetCreate(), l.req.Spec
	forbidden := spec.GetConcurrencyPolicy() == jobpolicyv1.ConcurrencyPolicy_CONCURRENCY_POLICY_FORBID && l.activeRuns() > 0
	held, askedHeld := l.deferred(jobpolicyv1.Step_STEP_CREATE_JOB), l.deferred(jobpolicyv1.Step_STEP_CREATE_MANUAL_JOB)
	if create != nil && (forbidden || held) {
		t.Fatalf("created %s, forbidden %v, held %v", create.GetName(), forbidden, held)
	}
	asked := l.req.GetSpec().GetRunNow()
	// While a manual run is deferred, those of the schedule start.
	if asked != "" && (forbidden || !askedHeld) && !slices.ContainsFunc(l.req.Jobs, func(job *jobpolicyv1.OwnedJob) bool { return job.GetRunNow() == asked }) {
		if (create.GetScheduledTime() == nil && create != nil) == (forbidden || held) {
			t.Fatalf("a manual run is requested, created: %v, forbidden %v, deferred %v", create, forbidden, held)
		}
		return
	}
	due, is := l.due()
	start := l.start(due)
	late := l.late(start)
	want := is && !l.now().Before(start) && !late && !forbidden && !held && !spec.GetSuspend()
	if want != (create != nil) {
		t.Fatalf("due %s (%v), starts %s, late %v, forbidden %v, held %v, suspended %v; created %v\n%s",
			due, is, start, late, forbidden, held, spec.GetSuspend(), create, render(resp, true))
	}
	if create == nil {
		return
	}
	if at := create.GetScheduledTime().AsTime(); !at.Equal(due) || !at.After(l.newest()) {
		t.Fatalf("started %s, due %s, newest before %s", at, due, l.newest())
	}
	if slices.ContainsFunc(l.req.Jobs, func(job *jobpolicyv1.OwnedJob) bool { return job.GetName() == create.GetName() }) {
		t.Fatalf("started %s twice", create.GetName())
	}
	replaces := spec.GetConcurrencyPolicy() == jobpolicyv1.ConcurrencyPolicy_CONCURRENCY_POLICY_REPLACE
	if replaces && len(resp.GetDelete()) != l.activeRuns() {
		t.Fatalf("replaces %d of %d", len(resp.GetDelete()), l.activeRuns())
	}
}

// checkSettled expects that the status agrees with the cluster.
func (l *life) checkSettled(t *rapid.T, resp *jobpolicyv1.DecideCronJobResponse) {
	listed := l.req.GetStatus().GetActive()
	for _, a := range listed {
		if !slices.ContainsFunc(l.req.Jobs, func(job *jobpolicyv1.OwnedJob) bool {
			return bytes.Equal(job.GetUid(), a.GetUid()) && job.GetOutcome() == outcomeActive
		}) {
			t.Fatalf("%s is listed, and not active", a.GetName())
		}
	}
	if len(listed) != l.activeRuns() {
		t.Fatalf("listed %d, active runs %d", len(listed), l.activeRuns())
	}
	finished := map[jobpolicyv1.JobOutcome]int32{}
	for _, job := range l.req.Jobs {
		if !l.early(job.GetScheduledTime()) { // these are kept
			finished[job.GetOutcome()]++
		}
	}
	if n := finished[jobpolicyv1.JobOutcome_JOB_OUTCOME_COMPLETE]; n > l.req.Spec.GetSuccessfulJobsHistoryLimit() {
		t.Fatalf("%d complete Jobs, limit %d", n, l.req.Spec.GetSuccessfulJobsHistoryLimit())
	}
	if n := finished[jobpolicyv1.JobOutcome_JOB_OUTCOME_FAILED]; n > l.req.Spec.GetFailedJobsHistoryLimit() {
		t.Fatalf("%d failed Jobs, limit %d", n, l.req.Spec.GetFailedJobsHistoryLimit())
	}
	if !l.req.Spec.GetSuspend() && resp.GetRequeueTime() == nil {
		t.Fatal("nobody would look again")
	}
}
