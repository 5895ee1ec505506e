package cronjob_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/cronjob"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

// A cluster holds what a caller of the engine sees of one CronJob. Nothing else
// survives between two decisions.
type cluster struct {
	req *jobpolicyv1.DecideCronJobRequest
	// takes is how long a run takes; fails says how it ends.
	takes time.Duration
	fails bool
	// created counts the Jobs, for their UIDs.
	created uint64
	// cases are what was asked and answered.
	cases caseFile
}

const outcomeActive = jobpolicyv1.JobOutcome_JOB_OUTCOME_ACTIVE

func newCluster() *cluster {
	return &cluster{
		req: &jobpolicyv1.DecideCronJobRequest{
			Now:     timestamp("2026-01-01T00:00:00Z"),
			CronJob: &jobpolicyv1.CronJobRef{Uid: uid("cronjob"), Namespace: "ns", Name: "report"},
			Spec: &jobpolicyv1.CronJobSpec{
				Schedule:                   "0 * * * *",
				CreationTime:               timestamp("2026-01-01T00:00:00Z"),
				SuccessfulJobsHistoryLimit: proto.Int32(3),
				FailedJobsHistoryLimit:     proto.Int32(1),
				Options:                    &jobpolicyv1.CronJobOptions{},
			},
			Status: &jobpolicyv1.CronJobStatus{},
		},
		takes: 10 * time.Minute,
	}
}

// uid makes a UID of a short readable name.
func uid(name string) []byte {
	b := make([]byte, 16)
	copy(b, name)
	return b
}

func numberedUID(n uint64) []byte { return binary.BigEndian.AppendUint64(make([]byte, 8), n) }

func timestamp(text string) *timestamppb.Timestamp {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return timestamppb.New(at)
}

func (c *cluster) now() time.Time { return c.req.GetNow().AsTime() }

// carryOut does what a decision asks for, as a caller does.
func (c *cluster) carryOut(resp *jobpolicyv1.DecideCronJobResponse) {
	for _, d := range resp.GetDelete() {
		c.remove(func(job *jobpolicyv1.OwnedJob) bool { return bytes.Equal(job.GetUid(), d.GetUid()) })
	}
	if create := resp.GetCreate(); create != nil {
		c.create(create)
	}
	if e := resp.GetEdits(); e != nil {
		c.edit(e)
	}
	if resp.GetStatus() != nil {
		c.req.Status = resp.GetStatus()
	}
	c.req.AbsentJobs, c.req.NamesTaken = nil, nil
}

func (c *cluster) remove(is func(*jobpolicyv1.OwnedJob) bool) {
	c.req.Jobs = slices.DeleteFunc(c.req.Jobs, is)
}

// create makes a Job, unless it is there already.
func (c *cluster) create(create *jobpolicyv1.CreateJob) {
	if slices.ContainsFunc(c.req.Jobs, func(job *jobpolicyv1.OwnedJob) bool { return job.GetName() == create.GetName() }) {
		return
	}
	c.created++
	c.req.Jobs = append(c.req.Jobs, &jobpolicyv1.OwnedJob{
		Uid: numberedUID(c.created), Name: create.GetName(), Outcome: outcomeActive, StartTime: proto.CloneOf(c.req.Now),
		ScheduledTime: proto.CloneOf(create.GetScheduledTime()), RunNow: create.GetRunNow(),
	})
}

func (c *cluster) edit(e *jobpolicyv1.CronJobEdits) {
	if e.GetSuspend() {
		c.req.Spec.Suspend = true
	}
	if e.GetClearRunNow() {
		c.req.Spec.RunNow = ""
	}
	if observed := e.GetObservedSchedule(); observed != nil {
		c.req.Spec.ObservedSchedule = observed
	}
	if until := e.GetFailuresCountedUntil(); until != nil {
		c.req.Spec.FailuresCountedUntil = until
	}
}

// finish ends a Job.
func (c *cluster) finish(job *jobpolicyv1.OwnedJob, at time.Time, fails bool) {
	job.FinishTime = timestamppb.New(at)
	job.Outcome = jobpolicyv1.JobOutcome_JOB_OUTCOME_FAILED
	if !fails {
		job.Outcome, job.CompletionTime = jobpolicyv1.JobOutcome_JOB_OUTCOME_COMPLETE, timestamppb.New(at)
	}
}

// decide asks the engine. If the engine requires more facts, it asks again with them.
func (c *cluster) decide() (*jobpolicyv1.DecideCronJobResponse, error) {
	resp, err := c.ask()
	if err != nil || resp.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE {
		return resp, err
	}
	for _, a := range c.req.GetStatus().GetActive() {
		if !slices.ContainsFunc(c.req.Jobs, func(job *jobpolicyv1.OwnedJob) bool { return bytes.Equal(job.GetUid(), a.GetUid()) }) {
			c.req.AbsentJobs = append(c.req.AbsentJobs, a.GetUid())
		}
	}
	return c.ask()
}

// ask asks once, and notes the answer.
func (c *cluster) ask() (*jobpolicyv1.DecideCronJobResponse, error) {
	resp, err := cronjob.Decide(c.req)
	if invalid := (*engine.InvalidRequestError)(nil); errors.As(err, &invalid) {
		c.cases.refuse(c.req, invalid.Violations[0].Field)
	}
	if err == nil {
		c.cases.Add(c.req, resp)
	}
	return resp, err
}

// tell adds one line to what is seen. Times are RFC 3339. Lines are
//
//	cronjob k=v…      another CronJob; spec k=v… changes it
//	schedule TEXT     its schedule; zone NAME its time zone; option NAME TEXT an option
//	now TIME          the time
//	status k=v…       fields of the status, active=name,name among them
//	job NAME k=v…     a Job; the same name again changes it; gone NAME… takes Jobs away
//	absent NAME…      Jobs of status.active that were looked up and are not there
//	taken NAME…       names that Jobs of others have
//	defercreations TIME  no Job is to be created before
//	deferasked TIME      no Job that was asked for is to be created before
//	group k=v…        what is known of the others in its group
//	claim NAME k=v…   the place of one of them in the line; without since it was asked for by hand
//	runs k=v…         takes=10m, fails=true: how runs go in play
func (c *cluster) tell(line string) error {
	name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	lines := map[string]func(string) error{
		"": ignore, "#": ignore, "cronjob": c.another, "spec": c.spec, "schedule": c.schedule, "zone": c.zone, "option": c.option,
		"now": c.setNow, "status": c.status, "job": c.job, "gone": c.gone, "absent": c.absent, "taken": c.taken, "defercreations": c.deferStep(jobpolicyv1.Step_STEP_CREATE_JOB),
		"deferasked": c.deferStep(jobpolicyv1.Step_STEP_CREATE_MANUAL_JOB),
		"runs":       c.runs, "group": c.group, "claim": c.claim,
	}
	tell, ok := lines[name]
	if !ok {
		return fmt.Errorf("unknown line %q", name)
	}
	return tell(rest)
}

func (c *cluster) mustTell(t testing.TB, lines ...string) *cluster {
	t.Helper()
	for _, line := range lines {
		if err := c.tell(line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	return c
}

func ignore(string) error { return nil }

// pairs calls set for each k=v of a text.
func pairs(text string, set map[string]func(string) error) error {
	for _, pair := range strings.Fields(text) {
		key, value, _ := strings.Cut(pair, "=")
		f, ok := set[key]
		if !ok {
			return fmt.Errorf("unknown key %q", key)
		}
		if err := f(value); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

func setTime(to **timestamppb.Timestamp) func(string) error {
	return func(text string) error {
		at, err := time.Parse(time.RFC3339, text)
		*to = timestamppb.New(at)
		if text == "" {
			*to, err = nil, nil
		}
		return err
	}
}

func setBool(to *bool) func(string) error {
	return func(text string) (err error) {
		*to, err = strconv.ParseBool(text)
		return err
	}
}

func setInt32(to **int32) func(string) error {
	return func(text string) error {
		n, err := strconv.ParseInt(text, 10, 32)
		*to = proto.Int32(int32(n))
		if text == "" {
			*to, err = nil, nil
		}
		return err
	}
}

func (c *cluster) another(rest string) error {
	*c = *newCluster()
	return c.spec(rest)
}

func (c *cluster) spec(rest string) error {
	spec := c.req.Spec
	policies := map[string]jobpolicyv1.ConcurrencyPolicy{"Allow": 1, "Forbid": 2, "Replace": 3}
	return pairs(rest, map[string]func(string) error{
		"policy":   func(v string) error { spec.ConcurrencyPolicy = policies[v]; return nil },
		"suspend":  setBool(&spec.Suspend),
		"deleting": setBool(&spec.Deleting),
		"created":  setTime(&spec.CreationTime),
		"success":  setInt32(&spec.SuccessfulJobsHistoryLimit),
		"failed":   setInt32(&spec.FailedJobsHistoryLimit),
		"local":    func(v string) error { spec.LocalTimeZone = v; return nil },
		"name":     func(v string) error { c.req.CronJob.Name = v; return nil },
		"deadline": func(v string) error {
			n, err := strconv.ParseInt(v, 10, 64)
			spec.StartingDeadlineSeconds = proto.Int64(n)
			return err
		},
	})
}

func (c *cluster) schedule(rest string) error { c.req.Spec.Schedule = rest; return nil }

func (c *cluster) zone(rest string) error { c.req.Spec.TimeZone = proto.String(rest); return nil }

// option sets an option, or removes it if there is no text. Its name is that of the
// contract, and so are those of the other fields that may be set here.
func (c *cluster) option(rest string) error {
	name, text, _ := strings.Cut(rest, " ")
	spec := c.req.Spec
	switch name {
	case "run_now":
		spec.RunNow = text
		return nil
	case "problem":
		spec.OptionProblems = append(spec.OptionProblems, text)
		return nil
	case "lost": // with a problem: nobody knows the last options
		spec.Options, spec.OptionProblems = nil, []string{text}
		return nil
	case "found":
		spec.Options, spec.OptionProblems = &jobpolicyv1.CronJobOptions{}, nil
		return nil
	case "group":
		spec.Options.Group = &jobpolicyv1.RunGroup{}
		_, err := fmt.Sscan(text, &spec.Options.Group.Name, &spec.Options.Group.MaxActiveRuns)
		return err
	case "observed_schedule":
		since, seen, _ := strings.Cut(text, " ")
		spec.ObservedSchedule = &jobpolicyv1.ObservedSchedule{Since: timestamp(since), Schedule: seen}
		return nil
	}
	return setOption(spec.Options, name, text)
}

func setOption(o *jobpolicyv1.CronJobOptions, name, text string) error {
	m := o.ProtoReflect()
	field := m.Descriptor().Fields().ByName(protoreflect.Name(name))
	switch {
	case field == nil:
		return fmt.Errorf("unknown option %q", name)
	case text == "":
		m.Clear(field)
		return nil
	case field.Enum() != nil:
		n, ok := options.EnumValue(field.Enum(), text)
		if !ok {
			return fmt.Errorf("%s has no value %q", name, text)
		}
		m.Set(field, protoreflect.ValueOfEnum(n))
		return nil
	}
	if field.Kind() == protoreflect.BoolKind {
		m.Set(field, protoreflect.ValueOfBool(text == "true"))
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	m.Set(field, protoreflect.ValueOfInt32(int32(n)))
	return err
}

func (c *cluster) setNow(rest string) error { return setTime(&c.req.Now)(rest) }

func (c *cluster) status(rest string) error {
	st := c.req.Status
	return pairs(rest, map[string]func(string) error{
		"last":    setTime(&st.LastScheduleTime),
		"next":    setTime(&st.NextScheduleTime),
		"success": setTime(&st.LastSuccessfulTime),
		"active": func(v string) error {
			st.Active = nil
			for name := range strings.SplitSeq(v, ",") {
				if name != "" {
					st.Active = append(st.Active, &jobpolicyv1.ActiveJob{Uid: uid(name), Name: name})
				}
			}
			return nil
		},
	})
}

func (c *cluster) job(rest string) error {
	name, rest, _ := strings.Cut(rest, " ")
	i := slices.IndexFunc(c.req.Jobs, func(job *jobpolicyv1.OwnedJob) bool { return job.GetName() == name })
	if i < 0 {
		i = len(c.req.Jobs)
		c.req.Jobs = append(c.req.Jobs, &jobpolicyv1.OwnedJob{Uid: uid(name), Name: name, Outcome: outcomeActive})
	}
	job := c.req.Jobs[i]
	end := func(fails bool) func(string) error {
		return func(v string) error {
			at, err := time.Parse(time.RFC3339, v)
			c.finish(job, at, fails)
			return err
		}
	}
	return pairs(rest, map[string]func(string) error{
		"scheduled": setTime(&job.ScheduledTime),
		"start":     setTime(&job.StartTime),
		"complete":  end(false),
		"failed":    end(true),
		"deleting":  setBool(&job.Deleting),
		"runNow": func(v string) error {
			job.RunNow = v
			return nil
		},
	})
}

func (c *cluster) gone(rest string) error {
	names := strings.Fields(rest)
	c.remove(func(job *jobpolicyv1.OwnedJob) bool { return slices.Contains(names, job.GetName()) })
	return nil
}

func (c *cluster) absent(rest string) error {
	for _, name := range strings.Fields(rest) {
		c.req.AbsentJobs = append(c.req.AbsentJobs, uid(name))
	}
	return nil
}

func (c *cluster) taken(rest string) error {
	c.req.NamesTaken = strings.Fields(rest)
	return nil
}

// deferStep reads a command that leaves a step until a time; without one, no more.
func (c *cluster) deferStep(step jobpolicyv1.Step) func(rest string) error {
	return func(rest string) error {
		var until *timestamppb.Timestamp
		err := setTime(&until)(rest)
		c.leave(step, until)
		return err
	}
}

// leave leaves a step until then; nil: no more.
func (c *cluster) leave(step jobpolicyv1.Step, until *timestamppb.Timestamp) {
	c.req.Deferrals = slices.DeleteFunc(c.req.Deferrals, func(d *jobpolicyv1.Deferral) bool { return d.GetStep() == step })
	if until != nil {
		c.req.Deferrals = append(c.req.Deferrals, &jobpolicyv1.Deferral{Step: step, Until: until})
	}
}

func (c *cluster) runs(rest string) error {
	return pairs(rest, map[string]func(string) error{
		"takes": func(v string) (err error) { c.takes, err = time.ParseDuration(v); return err },
		"fails": setBool(&c.fails),
	})
}

// group reads what is known of the others in the group, and forgets their places in the line.
func (c *cluster) group(rest string) error {
	c.req.Group = &jobpolicyv1.RunGroupFacts{}
	number := func(to *int32) func(string) error {
		return func(v string) error {
			n, err := strconv.ParseInt(v, 10, 32)
			*to = int32(n)
			return err
		}
	}
	return pairs(rest, map[string]func(string) error{
		"active": number(&c.req.Group.ActiveRuns), "max": number(&c.req.Group.MaxActiveRuns), "undecided": number(&c.req.Group.Undecided),
		"cluster": setBool(&c.req.Group.OfCluster), "asked": setTime(&c.req.Group.RunNowSince),
	})
}

func (c *cluster) claim(rest string) error {
	name, rest, _ := strings.Cut(rest, " ")
	claim := &jobpolicyv1.GroupClaim{CronJob: name, From: c.req.GetSpec().GetCreationTime()}
	c.req.Group.Claims = append(c.req.Group.Claims, claim)
	return pairs(rest, map[string]func(string) error{
		"since": setTime(&claim.Since), "from": setTime(&claim.From),
		"namespace": func(v string) error { claim.Namespace = v; return nil },
	})
}
