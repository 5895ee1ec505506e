package cronjob

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/annotation"
	"jobpolicy.dev/engine/deferral"
	"jobpolicy.dev/engine/zone"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Limits of the contract. The proto files state each one at its field.
const (
	maxRequestIDBytes   = 128
	maxCronJobNameBytes = 52
	maxNameBytes        = 253
	maxNamesTaken       = 10
	maxZoneBytes        = 256
	maxTextBytes        = 4096
	maxRows             = 10_000
	uidBytes            = 16
	maxListedViolations = 100
)

// A checker collects violations, and continues after the first one. Texts are made
// only for violations, because a request may hold 10000 rows.
type checker struct {
	violations []engine.FieldViolation
	// list and index say which entry of a list is being checked. Field names in checks
	// are then relative to the entry: they begin with a dot, or are empty for the entry
	// itself.
	list  string
	index int
}

func (c *checker) require(ok bool, field, format string, args ...any) bool {
	if !ok && len(c.violations) < maxListedViolations {
		if c.list != "" {
			field = fmt.Sprintf("%s[%d]%s", c.list, c.index, field)
		}
		c.violations = append(c.violations, engine.FieldViolation{Field: field, Description: fmt.Sprintf(format, args...)})
	}
	return ok
}

// validate is the only way into this package. It checks what later code relies on
// (the invariants of snapshot), in time linear in the request. Of texts that users write,
// such as the schedule, it checks only the length.
func validate(req *jobpolicyv1.DecideCronJobRequest) error {
	c := &checker{}
	c.length("request_id", req.GetRequestId(), 0, maxRequestIDBytes)
	c.requiredTime("now", req.GetNow())
	c.ref(req.GetCronJob())
	c.spec(req.GetSpec())
	c.status(req.GetStatus())
	c.jobs(req)
	c.namesTaken(req.GetNamesTaken())
	c.deferrals(req.GetDeferrals())
	if len(c.violations) > 0 {
		return &engine.InvalidRequestError{Violations: c.violations}
	}
	return nil
}

func (c *checker) namesTaken(names []string) {
	if !c.require(len(names) <= maxNamesTaken, "names_taken", "must have at most %d entries, has %d", maxNamesTaken, len(names)) {
		return
	}
	for i, name := range names {
		c.length(fmt.Sprintf("names_taken[%d]", i), name, 1, maxNameBytes)
	}
}

func (c *checker) deferrals(deferrals []*jobpolicyv1.Deferral) {
	n, most := len(deferrals), deferral.MaxEntries
	if !c.require(n <= most, "deferrals", "must have at most %d entries, has %d", most, n) {
		return
	}
	deferral.Check(deferrals, func(index int, field, text string) {
		c.require(false, fmt.Sprintf("deferrals[%d].%s", index, field), "%s", text)
	})
}

func (c *checker) ref(ref *jobpolicyv1.CronJobRef) {
	if !c.require(ref != nil, "cron_job", "is required") {
		return
	}
	c.uid("cron_job.uid", ref.GetUid())
	c.length("cron_job.namespace", ref.GetNamespace(), 1, maxNameBytes)
	c.length("cron_job.name", ref.GetName(), 1, maxCronJobNameBytes)
	c.require(ref.GetGeneration() >= 0, "cron_job.generation", "must not be negative, is %d", ref.GetGeneration())
}

func (c *checker) spec(spec *jobpolicyv1.CronJobSpec) {
	c.timetable("spec.", spec)
}

func (c *checker) annotations(field string, annotations map[string]string) {
	problem := annotation.Problem(annotations)
	c.require(problem == "", field, "%s", problem)
}

// timetable checks the fields that a schedule is read from, in the spec whose field
// names begin with prefix.
func (c *checker) timetable(prefix string, spec *jobpolicyv1.CronJobSpec) bool {
	if !c.require(spec != nil, strings.TrimSuffix(prefix, "."), "is required") {
		return false
	}
	c.length(prefix+"schedule", spec.GetSchedule(), 0, maxTextBytes)
	c.length(prefix+"time_zone", spec.GetTimeZone(), 0, maxZoneBytes)
	c.requiredTime(prefix+"creation_time", spec.GetCreationTime())
	_, err := zone.Load(spec.GetLocalTimeZone())
	c.require(err == nil, prefix+"local_time_zone", "must be the name of a time zone, is %q", spec.GetLocalTimeZone())
	c.annotations(prefix+"annotations", spec.GetAnnotations())
	return true
}

func (c *checker) status(status *jobpolicyv1.CronJobStatus) {
	c.time("status.last_schedule_time", status.GetLastScheduleTime())
	c.time("status.last_successful_time", status.GetLastSuccessfulTime())
	if !c.entries("status.active", len(status.GetActive())) {
		return
	}
	defer c.leave()
	for i, a := range status.GetActive() {
		c.list, c.index = "status.active", i
		c.uid(".uid", a.GetUid())
		c.length(".name", a.GetName(), 1, maxNameBytes)
	}
}

func (c *checker) jobs(req *jobpolicyv1.DecideCronJobRequest) {
	if !c.entries("jobs", len(req.GetJobs())) || !c.entries("absent_jobs", len(req.GetAbsentJobs())) {
		return
	}
	defer c.leave()
	seen := make(map[string]bool, len(req.GetJobs()))
	for i, job := range req.GetJobs() {
		c.list, c.index = "jobs", i
		c.job(job)
		c.require(!seen[string(job.GetUid())], ".uid", "is also that of another row")
		seen[string(job.GetUid())] = true
	}
	for i, uid := range req.GetAbsentJobs() {
		c.list, c.index = "absent_jobs", i
		c.uid("", uid)
		c.require(!seen[string(uid)], "", "has a row in jobs")
	}
}

// leave ends the check of a list's entries.
func (c *checker) leave() { c.list, c.index = "", 0 }

func (c *checker) job(job *jobpolicyv1.OwnedJob) {
	c.uid(".uid", job.GetUid())
	c.length(".name", job.GetName(), 1, maxNameBytes)
	c.annotations(".annotations", job.GetAnnotations())
	c.require(job.GetOutcome() != 0, ".outcome", "is required")
	c.time(".start_time", job.GetStartTime())
	c.time(".finish_time", job.GetFinishTime())
	c.time(".completion_time", job.GetCompletionTime())
	c.time(".scheduled_time", job.GetScheduledTime())
}

func (c *checker) uid(field string, uid []byte) {
	c.require(len(uid) == uidBytes, field, "must have %d bytes, has %d", uidBytes, len(uid))
}

func (c *checker) length(field, text string, low, high int) {
	c.require(len(text) >= low && len(text) <= high, field, "must have %d to %d bytes, has %d", low, high, len(text))
}

func (c *checker) between(field string, n int32, most int) {
	c.require(n >= 0 && int(n) <= most, field, "must be between 0 and %d, is %d", most, n)
}

func (c *checker) entries(field string, n int) bool {
	return c.require(n <= maxRows, field, "must have at most %d entries, has %d", maxRows, n)
}

func (c *checker) requiredTime(field string, t *timestamppb.Timestamp) {
	if c.require(t != nil, field, "is required") {
		c.time(field, t)
	}
}

func (c *checker) time(field string, t *timestamppb.Timestamp) {
	c.require(t == nil || t.IsValid(), field, "must be a time between the years 1 and 9999")
}
