package playground

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/engine/simulate"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/jobcheck"
	"jobpolicy.dev/services/internal/manifest"
	"jobpolicy.dev/services/internal/timeline"
)

// A Playground remembers the last play, so that the page can ask for its moments one by
// one. All moments together may take much memory.
type Playground struct{ last *simulate.Result }

// An Answer is what the page shows for a state.
type Answer struct {
	// Problem says why there is nothing to show. Absent: nothing is wrong.
	Problem *Problem `json:"problem,omitempty"`
	// Findings are what jobcheck finds in the manifest.
	Findings []jobcheck.Finding `json:"findings"`
	Kind     string             `json:"kind,omitempty"`
	Name     string             `json:"name,omitempty"`
	Play     *Play              `json:"play,omitempty"`
	Calendar *Calendar          `json:"calendar,omitempty"`
}

// A Play is the life of a Job.
type Play struct {
	Report
	// Ending says why the play ended without a verdict.
	Ending string `json:"ending,omitempty"`
	// Indexed says whether the Job's pods have indexes.
	Indexed bool `json:"indexed"`
	// Moments are the times of the moments, in seconds. Playground.Moment returns one.
	Moments []float64 `json:"moments"`
	// Picture is the life of the Job, to be drawn.
	Picture timeline.Picture `json:"picture"`
}

// Open plays a state.
func (p *Playground) Open(s State) *Answer {
	p.last = nil
	a := &Answer{Findings: []jobcheck.Finding{}}
	object, bad := read(s.Manifest)
	if bad != nil {
		a.Problem = bad
		return a
	}
	a.Kind, a.Name = object.Kind, object.Name()
	a.Findings = append(a.Findings, jobcheck.Check(object)...)
	if i := slices.IndexFunc(a.Findings, func(f jobcheck.Finding) bool { return f.Severity == jobcheck.Error }); i >= 0 {
		f := a.Findings[i]
		if f.Text == "unknown field" {
			f.Text += ": expected a field of batch/v1, in the same spelling"
		}
		a.Problem = &Problem{Field: "manifest", Line: f.Line, Path: f.Path, Text: f.Text}
		return a
	}
	job := object.Job
	if object.CronJob != nil {
		job = JobOf(object.CronJob)
		if a.Calendar, a.Problem = s.calendar(object.CronJob); a.Problem != nil {
			return a
		}
	}
	a.Play, a.Problem = p.play(s, job)
	return a
}

// read reads the first Job or CronJob of a manifest.
func read(text string) (*manifest.Object, *Problem) {
	if len(text) > maxManifest {
		return nil, problem("manifest", fmt.Sprintf("expected at most %d KiB, got %d", maxManifest>>10, len(text)>>10))
	}
	objects, err := manifest.Read("manifest", []byte(text))
	manifest.UsePolicies(objects)
	if err != nil {
		return nil, problem("manifest", strings.TrimPrefix(err.Error(), "manifest: "))
	}
	for _, o := range objects {
		if o.JobPolicy != nil && len(o.Problems) > 0 {
			p := o.Problems[0]
			return nil, &Problem{Field: "manifest", Line: p.Line, Path: p.Path, Text: p.Text}
		}
	}
	for _, o := range objects {
		if o.Job != nil || o.CronJob != nil || o.Incomplete {
			return o, nil
		}
	}
	return nil, problem("manifest", "expected a Job or CronJob of batch/v1 (apiVersion and kind), found none")
}

func (p *Playground) play(s State, job *batchv1.Job) (*Play, *Problem) {
	sc, bad := s.scenario()
	if bad != nil {
		return nil, bad
	}
	sc, err := Scenario(job, sc)
	if err != nil {
		return nil, problem("manifest", err.Error())
	}
	for _, n := range []struct {
		field string
		value int32
	}{{"parallelism", sc.Spec.GetParallelism()}, {"completions", sc.Spec.GetCompletions()}} {
		if n.value > MaxPods {
			return nil, &Problem{
				Field: "manifest", Path: "spec." + n.field,
				Text: fmt.Sprintf("expected at most %d on this page, got %d (kubectl jobpolicy simulate plays larger Jobs)", MaxPods, n.value),
			}
		}
	}
	r, err := simulate.Play(sc)
	if err != nil {
		return nil, problem("manifest", jobcheck.InManifest(err).Error())
	}
	report, err := NewReport(sc.Job.GetName(), r)
	if err != nil {
		return nil, problem("manifest", err.Error())
	}
	p.last = r
	return newPlay(report, r, sc.Spec), nil
}

func newPlay(report Report, r *simulate.Result, spec *jobpolicyv1.JobSpec) *Play {
	out := &Play{
		Report: report, Moments: []float64{},
		Indexed: spec.GetCompletionMode() == jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED,
	}
	if r.Verdict == simulate.Unfinished {
		out.Ending = Unfinished(r)
	}
	for _, m := range r.Moments {
		out.Moments = append(out.Moments, m.At.Seconds())
	}
	chart := timeline.Played(report.Job, start, r)
	out.Picture = chart.Picture()
	return out
}
