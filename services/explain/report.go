package explain

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/engine/simulate"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A State is a Job's situation in one word.
type State string

// The states of a Job.
const (
	Complete   State = "Complete"
	Failed     State = "Failed"
	Completing State = "Completing" // it has succeeded, and its pods have to end
	Failing    State = "Failing"    // it has failed, and its pods have to end
	Deleting   State = "Deleting"
	Unmanaged  State = "Unmanaged" // no controller seems to act on it
	Suspended  State = "Suspended"
	Paused     State = "Paused"  // parallelism is 0
	Blocked    State = "Blocked" // its pods cannot be created
	BackingOff State = "BackingOff"
	Stuck      State = "Stuck" // its pods exist and cannot start
	Waiting    State = "Waiting"
	Starting   State = "Starting"
	Running    State = "Running"
)

// A Report is an explanation.
type Report struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	State     State  `json:"state"`
	// Headline says in one sentence what is happening.
	Headline string `json:"headline"`
	// Cause says in a few words why pods are not created or do not start; only Blocked and
	// Stuck Jobs have one.
	Cause string `json:"cause,omitempty"`
	// End is how the Job failed; nil if it has not, or if nothing is known but its conditions.
	End *End `json:"end,omitempty"`
	// Waits is what the Job waits for.
	Waits []Wait `json:"waits,omitempty"`
	// Next is what happens next by itself. Nil: nothing.
	Next *Next `json:"next,omitempty"`
	// Change says what a person can do to change the situation.
	Change []string `json:"change,omitempty"`
	// Ends is what would end the Job, the nearest first.
	Ends []string `json:"ends,omitempty"`
	// Refused are the writes that the API server refuses the controller.
	Refused []Refused `json:"refused,omitempty"`
	Counts  Counts    `json:"counts"`
	Retries string    `json:"retries,omitempty"`
	// Pods are those that need attention.
	Pods []PodProblem `json:"pods,omitempty"`
	// Notes say what is often misunderstood about a Job in this situation.
	Notes []Note `json:"notes,omitempty"`
	// Options are those of a JobPolicy. Nil: the Job has none.
	Options *Options `json:"options,omitempty"`
	// Rules are the engine's verdict rules with their answers.
	Rules []Rule `json:"rules,omitempty"`
	// Unread says what could not be read.
	Unread []string `json:"unread,omitempty"`
}

// A Wait is one thing that is waited for.
type Wait struct {
	For   string     `json:"for"`
	Until *time.Time `json:"until,omitempty"`
}

// Counts are pods, as the API server shows them now.
type Counts struct {
	Active      int32  `json:"active"`
	Ready       int32  `json:"ready"`
	Terminating int32  `json:"terminating"`
	Succeeded   int32  `json:"succeeded"`
	Failed      int32  `json:"failed"`
	Completions *int32 `json:"completions,omitempty"`
	Wanted      *int32 `json:"wanted,omitempty"`
}

// A Rule is one rule of the engine.
type Rule struct {
	Name    string `json:"name"`
	Decides bool   `json:"decides,omitempty"`
	Answer  string `json:"answer"`
}

// A Note is about something that is often misunderstood.
type Note struct {
	Topic string `json:"topic"`
	Text  string `json:"text"`
}

// work is a report that is being made.
type work struct {
	Facts
	Report
	resp     *jobpolicyv1.DecideJobResponse
	refusals []writes.Refusal
	// notStarted counts the pods that exist and cannot start.
	notStarted int
	// uncounted: one of them has had no restart that backoffLimit counts.
	uncounted bool
	// keptOpen counts the pods that run only because of an init container, or of a container that the
	// others have outlived.
	keptOpen int
	// gone counts failed pods that no longer exist, if the Job may wait because of them.
	gone int
	// recorded: the decision was made by a controller that acts on the Job.
	recorded bool
	// optionsLeftOut: the Job asks for options, and nobody reads them.
	optionsLeftOut bool
}

// Explain explains a Job. It fails if the engine refuses the Job. It leaves options out of a Job that does not
// take them (TakesOptions).
func Explain(f Facts, decide Decide) (*Report, error) {
	optionsLeftOut := wire.HasPolicy(f.Job.Annotations) && !TakesOptions(f)
	if optionsLeftOut {
		f.Job = withoutOptions(f.Job)
	}
	resp, err := ask(f, decide)
	if err != nil {
		return nil, err
	}
	w := &work{Facts: f, resp: resp, optionsLeftOut: optionsLeftOut}
	if w.Next, err = next(f, resp, decide); err != nil {
		return nil, err
	}
	w.Report.Options = f.Options()
	w.count()
	w.doubt()
	w.explain()
	return &w.Report, nil
}

// Recorded explains a decision that a controller has made and carries out. pods counts the
// active, ready and terminating pods. The facts may lack the pods themselves: then the
// report names none of them.
func Recorded(f Facts, e *jobpolicyv1.Explanation, pods Counts) *Report {
	resp := &jobpolicyv1.DecideJobResponse{Explanation: e}
	if missing := e.GetFacts().GetWantedActive() - pods.Active; missing > 0 {
		resp.Create = &jobpolicyv1.CreatePods{Count: missing}
	}
	w := &work{Facts: f, resp: resp, recorded: true}
	w.count()
	w.Counts.Active, w.Counts.Ready, w.Counts.Terminating = pods.Active, pods.Ready, pods.Terminating
	w.explain()
	return &w.Report
}

// explain writes the report. The pods must have been counted.
func (w *work) explain() {
	w.Namespace, w.Name, w.Report.Unread = w.Job.Namespace, w.Job.Name, w.Facts.Unread
	w.lookAtPods()
	w.findRefusals()
	w.situation()
	w.tellWrongOwner()
	w.end()
	w.waits()
	w.tellRefusals()
	w.tellKept()
	w.retries()
	w.endings()
	w.notes()
	w.notesOnEnd()
	w.noteOnOptions()
	w.noteOnLastValid()
	w.noteOnResources()
	for _, r := range w.resp.GetExplanation().GetRules() {
		w.Rules = append(w.Rules, Rule{r.GetRule().Name(), r.GetDecided(), r.GetDetail()})
	}
}

func (w *work) count() {
	facts := w.resp.GetExplanation().GetFacts()
	w.Counts = Counts{Completions: w.Job.Spec.Completions, Succeeded: w.Job.Status.Succeeded, Failed: w.Job.Status.Failed}
	if facts != nil {
		w.Counts.Succeeded, w.Counts.Failed, w.Counts.Wanted = facts.GetSucceeded(), facts.GetFailed(), facts.WantedActive
	}
	for i := range w.Facts.Pods {
		switch p := &w.Facts.Pods[i]; {
		case ended(p):
		case p.DeletionTimestamp != nil:
			w.Counts.Terminating++
		default:
			w.Counts.Active++
			if condition(p, corev1.PodReady) == corev1.ConditionTrue {
				w.Counts.Ready++
			}
		}
	}
}

func (w *work) when(t time.Time) string { return when(w.Now, t) }
func (w *work) ago(t time.Time) string  { return ago(w.Now, t) }

// when writes a time with its distance from now.
func when(now, t time.Time) string {
	at := t.UTC().Truncate(time.Second).Format(time.RFC3339)
	if d := t.Sub(now).Round(time.Second); d >= 0 {
		return fmt.Sprintf("%s (in %s)", at, simulate.Clock(d))
	}
	return at + " (" + ago(now, t) + ")"
}

func ago(now, t time.Time) string {
	return simulate.Clock(now.Sub(t).Round(time.Second)) + " ago"
}

// builtin reports whether the Job names no manager, so that the built-in controller, or one
// in its place, acts on it.
func builtin(job *batchv1.Job) bool {
	return ptr.Deref(job.Spec.ManagedBy, batchv1.JobControllerName) == batchv1.JobControllerName
}

// manager is who acts on the Job, for people.
func manager(job *batchv1.Job) string {
	if builtin(job) {
		return "the Job controller"
	}
	return "the controller " + *job.Spec.ManagedBy
}

func jobCondition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == kind && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}
