package cronjob

import (
	"jobpolicy.dev/engine/internal/check"
	"jobpolicy.dev/engine/zone"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Limits of the contract. The proto files state each one at its field.
const (
	maxCronJobNameBytes = 52
	maxNamesTaken       = 10
	maxZoneBytes        = 256
	maxTextBytes        = 4096
	maxRows             = 10_000
	maxGroupRuns        = 1_000_000
	uidBytes            = 16
)

// A checker checks the messages of the contract that are about CronJobs.
type checker struct{ *check.Checker }

// decideCronJob checks what later code relies on (the invariants of snapshot), in time
// linear in the request. Of texts that users write, such as the schedule, it checks only
// the length.
func (c checker) decideCronJob(req *jobpolicyv1.DecideCronJobRequest) {
	c.RequestID(req.GetRequestId())
	c.RequiredTime("now", req.GetNow())
	c.ref(req.GetCronJob())
	c.timetable(req.GetSpec())
	c.memory(req.GetSpec())
	c.status(req.GetStatus())
	c.jobs(req)
	check.Each(c.Checker, "names_taken", maxNamesTaken, req.GetNamesTaken(), func(name string) { c.BytesBetween("", name, 1, check.MaxNameBytes) })
	c.Deferrals(req.GetDeferrals())
	c.group(req.GetGroup())
}

func (c checker) group(group *jobpolicyv1.RunGroupFacts) {
	c.Within("group")
	defer c.Leave()
	c.Between("active_runs", int64(group.GetActiveRuns()), 0, maxGroupRuns)
	c.NotNegative("max_active_runs", int64(group.GetMaxActiveRuns()))
	c.NotNegative("undecided", int64(group.GetUndecided()))
	c.OptionalTime("run_now_since", group.GetRunNowSince())
	shortest := 0
	if group.GetOfCluster() {
		shortest = 1
	}
	check.Each(c.Checker, "claims", maxRows, group.GetClaims(), func(claim *jobpolicyv1.GroupClaim) {
		c.BytesBetween("cron_job", claim.GetCronJob(), 1, maxCronJobNameBytes)
		c.BytesBetween("namespace", claim.GetNamespace(), shortest, check.MaxNameBytes)
		c.OptionalTime("since", claim.GetSince())
		c.RequiredTime("from", claim.GetFrom())
	})
}

func (c checker) ref(ref *jobpolicyv1.CronJobRef) {
	if !c.Require(ref != nil, "cron_job", "is required") {
		return
	}
	c.uid("cron_job.uid", ref.GetUid())
	c.BytesBetween("cron_job.namespace", ref.GetNamespace(), 1, check.MaxNameBytes)
	c.BytesBetween("cron_job.name", ref.GetName(), 1, maxCronJobNameBytes)
	c.NotNegative("cron_job.generation", ref.GetGeneration())
}

// timetable checks the fields that a schedule is read from.
func (c checker) timetable(spec *jobpolicyv1.CronJobSpec) {
	c.Within("spec")
	defer c.Leave()
	if !c.Require(spec != nil, "", "is required") {
		return
	}
	c.BytesBetween("schedule", spec.GetSchedule(), 0, maxTextBytes)
	c.BytesBetween("time_zone", spec.GetTimeZone(), 0, maxZoneBytes)
	c.RequiredTime("creation_time", spec.GetCreationTime())
	_, err := zone.Load(spec.GetLocalTimeZone())
	c.Require(err == nil, "local_time_zone", "must be the name of a time zone, is %q", spec.GetLocalTimeZone())
	check.Options(c.Checker, "options", spec.GetOptions())
}

// memory checks what earlier decisions have recorded, and the user's requests.
func (c checker) memory(spec *jobpolicyv1.CronJobSpec) {
	c.Within("spec")
	defer c.Leave()
	c.OptionProblems("option_problems", spec.GetOptionProblems())
	c.BytesBetween("run_now", spec.GetRunNow(), 0, maxTextBytes)
	c.OptionalTime("failures_counted_until", spec.GetFailuresCountedUntil())
	if observed := spec.GetObservedSchedule(); observed != nil {
		c.RequiredTime("observed_schedule.since", observed.GetSince())
		c.BytesBetween("observed_schedule.schedule", observed.GetSchedule(), 0, maxTextBytes)
	}
}

func (c checker) status(status *jobpolicyv1.CronJobStatus) {
	c.OptionalTime("status.last_schedule_time", status.GetLastScheduleTime())
	c.OptionalTime("status.last_successful_time", status.GetLastSuccessfulTime())
	c.OptionalTime("status.next_schedule_time", status.GetNextScheduleTime())
	check.Each(c.Checker, "status.active", maxRows, status.GetActive(), func(a *jobpolicyv1.ActiveJob) {
		c.uid("uid", a.GetUid())
		c.BytesBetween("name", a.GetName(), 1, check.MaxNameBytes)
	})
}

func (c checker) jobs(req *jobpolicyv1.DecideCronJobRequest) {
	if !c.Length("jobs", len(req.GetJobs()), maxRows) || !c.Length("absent_jobs", len(req.GetAbsentJobs()), maxRows) {
		return
	}
	seen := make(map[string]bool, len(req.GetJobs()))
	check.Each(c.Checker, "jobs", maxRows, req.GetJobs(), func(job *jobpolicyv1.OwnedJob) {
		c.job(job)
		c.Require(!seen[string(job.GetUid())], "uid", "is also that of another row")
		seen[string(job.GetUid())] = true
	})
	check.Each(c.Checker, "absent_jobs", maxRows, req.GetAbsentJobs(), func(uid []byte) {
		c.uid("", uid)
		c.Require(!seen[string(uid)], "", "has a row in jobs")
	})
}

func (c checker) job(job *jobpolicyv1.OwnedJob) {
	c.uid("uid", job.GetUid())
	c.BytesBetween("name", job.GetName(), 1, check.MaxNameBytes)
	c.BytesBetween("run_now", job.GetRunNow(), 0, maxTextBytes)
	c.Require(job.GetOutcome() != 0, "outcome", "is required")
	c.OptionalTime("start_time", job.GetStartTime())
	c.OptionalTime("finish_time", job.GetFinishTime())
	c.OptionalTime("completion_time", job.GetCompletionTime())
	c.OptionalTime("scheduled_time", job.GetScheduledTime())
}

func (c checker) uid(field string, uid []byte) {
	if len(uid) != uidBytes {
		c.Violated(field, "must have %d bytes, has %d", uidBytes, len(uid))
	}
}
