package explain

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/cronruns"
)

// CronFacts hold what was read of a CronJob.
type CronFacts struct {
	CronJob *batchv1.CronJob
	// OptionsFrom says where its options are, as that of Facts does.
	OptionsFrom string
	// Jobs are all Jobs of its namespace, whoever controls them, read after the CronJob.
	Jobs []batchv1.Job
	// Others are all CronJobs of the namespace with their options, if the CronJob has a group.
	Others []batchv1.CronJob
	// Events are those on the CronJob.
	Events []corev1.Event
	// Zone is the zone of a schedule that names none. Empty: UTC.
	Zone string
	Now  time.Time
	// Unread says what could not be read, and why.
	Unread []string
}

// DecideCronJob asks an engine.
type DecideCronJob func(*jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error)

// The states that only a CronJob has; it also may be Deleting, Suspended, Blocked,
// Waiting or Starting.
const (
	Scheduled State = "Scheduled" // it waits for its next run
	Invalid   State = "Invalid"   // no run ever starts: its schedule or time zone makes no sense; a Job: its policy
	Missed    State = "Missed"    // the last run that was due is too late to start
	Late      State = "Late"      // a run is due, and nobody starts it
)

// A CronReport is the explanation of a CronJob.
type CronReport struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	State     State  `json:"state"`
	// Headline says what is happening.
	Headline string `json:"headline"`
	// Waits is what it waits for, besides its next run.
	Waits []Wait `json:"waits,omitempty"`
	// Change says what a person can do to change the situation.
	Change []string `json:"change,omitempty"`
	// Refused are the writes that the API server refuses the controller.
	Refused []Refused `json:"refused,omitempty"`
	// Next are the coming runs, with the changes of the clock between them.
	Next []cronruns.Time `json:"next,omitempty"`
	// Skipped are runs that were due and were not started, the newest first; at most
	// 10 of SkippedTotal.
	Skipped      []SkippedRun `json:"skipped,omitempty"`
	SkippedTotal int64        `json:"skippedTotal,omitempty"`
	// Active are the runs that have not ended. ByHand are Jobs that somebody created from the
	// CronJob and that have not ended: its concurrencyPolicy does not count them. Ended are the
	// newest of the others.
	Active   []ActiveRun `json:"active,omitempty"`
	ByHand   []ActiveRun `json:"byHand,omitempty"`
	Ended    []EndedRun  `json:"ended,omitempty"`
	Settings []Setting   `json:"settings"`
	// Warnings are recent events, and the warnings of the engine.
	Warnings []string `json:"warnings,omitempty"`
	Notes    []Note   `json:"notes,omitempty"`
	// Kept says why each Job is kept.
	Kept   []Note   `json:"kept,omitempty"`
	Rules  []Rule   `json:"rules,omitempty"`
	Unread []string `json:"unread,omitempty"`
}

// A SkippedRun was due and was not started.
type SkippedRun struct {
	At  time.Time `json:"at"`
	Why string    `json:"why"`
}

// An ActiveRun is a Job that has not ended.
type ActiveRun struct {
	Job       string     `json:"job"`
	Scheduled *time.Time `json:"scheduled,omitempty"`
	Started   *time.Time `json:"started,omitempty"`
	// State is in words: how many pods are active, or why there are none.
	State string `json:"state"`
}

// An EndedRun is a Job that has ended.
type EndedRun struct {
	Job     string    `json:"job"`
	ByHand  bool      `json:"byHand,omitempty"` // it is no run of the CronJob
	Outcome string    `json:"outcome"`          // Complete or Failed
	Reason  string    `json:"reason"`
	Ended   time.Time `json:"ended"`
}

// A Setting is one part of the CronJob's spec, one of its annotations, or an option.
type Setting struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Meaning string `json:"meaning"`
}

// cronWork is a report of a CronJob that is being made.
type cronWork struct {
	CronFacts
	CronReport
	owned []*batchv1.Job
	resp  *jobpolicyv1.DecideCronJobResponse
	// schedule is nil if it cannot be read; unreadable says why.
	schedule   *cronruns.Reader
	unreadable error
	plan       cronruns.Plan
	// statusDue: the status is to be written.
	statusDue bool
	refusals  []writes.Refusal
}

// ExplainCronJob explains a CronJob. It fails if the engine refuses the CronJob.
func ExplainCronJob(f CronFacts, decide DecideCronJob) (*CronReport, error) {
	w := &cronWork{CronFacts: f, owned: ownedBy(f.CronJob, f.Jobs), plan: cronruns.PlanOf(f.CronJob, f.Zone)}
	w.Namespace, w.Name, w.CronReport.Unread = f.CronJob.Namespace, f.CronJob.Name, f.Unread
	var err error
	if w.resp, err = w.ask(decide); err != nil {
		return nil, err
	}
	if w.schedule, w.unreadable = cronruns.Read(w.plan); w.unreadable == nil && f.CronJob.DeletionTimestamp == nil {
		w.Next = w.coming()
	}
	w.runs()
	w.findRefusals()
	w.situation()
	w.tellRefusals()
	w.settings()
	w.engineFacts()
	w.warnings()
	w.notes()
	w.noteOnLastValid()
	return &w.CronReport, nil
}

// comingRuns is how many of the next runs a report lists.
const comingRuns = 3

// coming lists the next runs. The times of an interval (@every) count from the last run.
func (w *cronWork) coming() []cronruns.Time {
	from := w.since()
	// The engine ignores a last run in the future, unless it is the next one, started early.
	// A suspended CronJob has no next one.
	if next := w.resp.GetExplanation().GetNextScheduleTime(); from.After(w.Now) && (next == nil || next.AsTime().Before(from)) {
		from = w.Now
	}
	return slices.DeleteFunc(w.schedule.Next(w.schedule.Latest(from, w.Now), comingRuns), func(t cronruns.Time) bool { return !t.At.After(w.Now) })
}

func ownedBy(cron *batchv1.CronJob, jobs []batchv1.Job) []*batchv1.Job {
	var owned []*batchv1.Job
	for i := range jobs {
		if wire.ControlsJob(cron, &jobs[i]) {
			owned = append(owned, &jobs[i])
		}
	}
	return owned
}

// ask asks the engine. It asks again if the engine has to know which of the active Jobs are
// gone, or that a name is taken, and to learn what follows after the status is written.
func (w *cronWork) ask(decide DecideCronJob) (*jobpolicyv1.DecideCronJobResponse, error) {
	req, err := w.request()
	if err != nil {
		return nil, err
	}
	req.Group = w.groupFacts(decide)
	resp, err := decide(req)
	if err != nil {
		return nil, err
	}
	if resp.GetDisposition() == jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE {
		req.AbsentJobs = absent(req)
		if resp, err = decide(req); err != nil {
			return nil, err
		}
	}
	// So many at most: the name of a manual run, and those of the runs that are due and may start.
	for range 1 + max(1, w.plan.MissedRuns) {
		create := resp.GetCreate()
		if create == nil || !w.takenByOthers(create.GetName()) {
			break
		}
		req.NamesTaken = append(req.NamesTaken, create.GetName())
		if resp, err = decide(req); err != nil {
			return nil, err
		}
	}
	if resp.GetStatus() != nil {
		w.statusDue = true
		req.Status = resp.GetStatus()
		return decide(req)
	}
	return resp, nil
}

func (w *cronWork) request() (*jobpolicyv1.DecideCronJobRequest, error) {
	cron := w.CronJob
	uid, err := wire.UIDBytes(cron.UID)
	if err != nil {
		return nil, err
	}
	req := &jobpolicyv1.DecideCronJobRequest{
		Now: timestamppb.New(w.Now),
		CronJob: &jobpolicyv1.CronJobRef{
			Uid: uid, Namespace: cron.Namespace, Name: cron.Name, Generation: cron.Generation,
		},
		Spec:   wire.CronJobSpec(cron, cronruns.Suspended(cron), w.Zone),
		Status: wire.CronJobStatus(cron),
	}
	for _, job := range w.owned {
		m, err := wire.OwnedJob(job)
		if err != nil {
			return nil, err
		}
		req.Jobs = append(req.Jobs, m)
	}
	return req, nil
}

// absent are the active Jobs that are not in the list. The list is newer than the status,
// so these Jobs no longer exist.
func absent(req *jobpolicyv1.DecideCronJobRequest) [][]byte {
	var gone [][]byte
	for _, active := range req.GetStatus().GetActive() {
		if !slices.ContainsFunc(req.GetJobs(), func(job *jobpolicyv1.OwnedJob) bool { return string(job.GetUid()) == string(active.GetUid()) }) {
			gone = append(gone, active.GetUid())
		}
	}
	return gone
}

func (w *cronWork) takenByOthers(name string) bool {
	return slices.ContainsFunc(w.Jobs, func(job batchv1.Job) bool { return job.Name == name }) &&
		!slices.ContainsFunc(w.owned, func(job *batchv1.Job) bool { return job.Name == name })
}

func (w *cronWork) handedOver() bool { return cronruns.HandedOver(w.CronJob) }

// cronManager is who runs the CronJob, for people.
func (w *cronWork) cronManager() string {
	if w.handedOver() {
		return "the controller " + w.CronJob.Annotations[wire.CronJobManagedBy]
	}
	return "the CronJob controller"
}

func (w *cronWork) when(t time.Time) string { return when(w.Now, t) }
func (w *cronWork) ago(t time.Time) string  { return ago(w.Now, t) }
