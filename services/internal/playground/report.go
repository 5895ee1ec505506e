package playground

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/engine/simulate"
	"jobpolicy.dev/executor/wire"
)

// A Report is a play in a form for programs. Times are seconds from its beginning.
type Report struct {
	Job             string            `json:"job"`
	Verdict         string            `json:"verdict"`
	Reason          string            `json:"reason,omitempty"`
	Message         string            `json:"message,omitempty"`
	Stopped         string            `json:"stopped,omitempty"`
	MakespanSeconds float64           `json:"makespanSeconds"`
	Timeline        []Entry           `json:"timeline"`
	Pods            []Pod             `json:"pods"`
	Status          batchv1.JobStatus `json:"status"`
}

// An Entry is a line of the timeline.
type Entry struct {
	AtSeconds float64       `json:"atSeconds"`
	Kind      simulate.Kind `json:"kind"`
	Pods      []int32       `json:"pods,omitempty"`
	Text      string        `json:"text"`
}

// A Pod is the life of one pod.
type Pod struct {
	Name           string   `json:"name"`
	Index          *int32   `json:"index,omitempty"`
	CreatedSeconds float64  `json:"createdSeconds"`
	StartedSeconds *float64 `json:"startedSeconds,omitempty"`
	EndedSeconds   *float64 `json:"endedSeconds,omitempty"`
	Outcome        string   `json:"outcome,omitempty"`
	ExitCode       int32    `json:"exitCode,omitempty"`
	Restarts       int      `json:"restarts,omitempty"`
}

// NewReport is the report of a play of a Job.
func NewReport(name string, r *simulate.Result) (Report, error) {
	status, err := wire.APIStatus(r.Status)
	if err != nil {
		return Report{}, err
	}
	out := Report{
		Job: name, Verdict: r.Verdict, Reason: r.Reason, Message: r.Message, Stopped: r.Stopped,
		MakespanSeconds: r.Makespan.Seconds(), Status: status, Timeline: []Entry{}, Pods: []Pod{},
	}
	for _, e := range r.Timeline {
		out.Timeline = append(out.Timeline, Entry{e.At.Seconds(), e.Kind, e.Pods, e.Text})
	}
	for _, p := range r.Pods {
		out.Pods = append(out.Pods, Pod{
			Name: p.Name, Index: p.Index, CreatedSeconds: p.Created.Seconds(), StartedSeconds: inSeconds(p.Started), EndedSeconds: inSeconds(p.Ended),
			Outcome: p.Outcome, ExitCode: p.ExitCode, Restarts: p.Restarts,
		})
	}
	return out, nil
}

func inSeconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	s := d.Seconds()
	return &s
}

// Unfinished says why a play ended before the Job did.
func Unfinished(r *simulate.Result) string {
	nothing := r.Stopped == "nothing more happens"
	switch {
	case r.Deleted:
		return "the Job was deleted"
	case r.Spec.GetSuspend():
		return "the Job is suspended, and nothing resumes it"
	case nothing && r.Status.GetActive() > 0:
		return "pods that neither end nor fail keep the Job open, and it has no activeDeadlineSeconds"
	case nothing:
		return "nothing more happens; " + r.Explanation.GetSummary()
	}
	return r.Stopped
}
