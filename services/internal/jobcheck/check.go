package jobcheck

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/manifest"
)

// A Severity says how bad a finding is.
type Severity string

// The severities.
const (
	// Error: the API server refuses the object, every Job of the CronJob, or every pod.
	Error Severity = "error"
	// Warning: the API server accepts the object, but it is probably not what was meant.
	Warning Severity = "warning"
	// Note: the API server accepts the object, but it is often misunderstood.
	Note Severity = "note"
)

// A Finding is one thing that a check found.
type Finding struct {
	File     string   `json:"file"`
	Line     int      `json:"line"`
	Object   string   `json:"object"`
	Severity Severity `json:"severity"`
	// Check is the name of what was checked.
	Check string `json:"check"`
	Path  string `json:"path"`
	Text  string `json:"text"`
}

// subject is a Job, or a CronJob with the Job of its template.
type subject struct {
	spec *batchv1.JobSpec
	// cron is nil for a Job.
	cron *batchv1.CronJob
	name string
	// object is the metadata of the Job or CronJob.
	object *metav1.ObjectMeta
	// annotations are those of the Job, and options those that the Job asks for in them.
	annotations map[string]string
	options     *jobpolicyv1.PolicySpec
	// base is the path of the Job's spec.
	base  string
	found []Finding
	check string
}

// find reports a finding at a field of the Job's spec.
func (s *subject) find(severity Severity, field, text string) {
	s.at(severity, strings.TrimSuffix(s.base+"."+field, "."), text)
}

// at reports a finding at a field of the object.
func (s *subject) at(severity Severity, path, text string) {
	s.found = append(s.found, Finding{Severity: severity, Check: s.check, Path: path, Text: text})
}

// Check checks one object of a file. Objects of other kinds have no findings, except for
// those that the API server does not know although they are called Job or CronJob.
func Check(o *manifest.Object) []Finding {
	s := &subject{name: o.Name()}
	switch {
	case o.Job != nil:
		s.spec, s.base, s.annotations = &o.Job.Spec, "spec", o.Job.Annotations
		s.object = &o.Job.ObjectMeta
	case o.CronJob != nil:
		s.spec, s.cron, s.base = &o.CronJob.Spec.JobTemplate.Spec, o.CronJob, "spec.jobTemplate.spec"
		s.annotations = o.CronJob.Spec.JobTemplate.Annotations
		s.object = &o.CronJob.ObjectMeta
	case o.JobPolicy == nil && !o.Incomplete:
		return nil
	}
	s.options, _ = wire.PolicySpec(s.annotations)
	s.check = "fields"
	for _, p := range o.Problems {
		s.at(Error, p.Path, p.Text)
	}
	for _, c := range checks {
		if o.Incomplete || o.JobPolicy != nil {
			break
		}
		s.check = c.Name
		c.run(s)
	}
	return place(o, s.found)
}

// place adds file, object and line to findings, and sorts them by line.
func place(o *manifest.Object, found []Finding) []Finding {
	for i := range found {
		f := &found[i]
		f.File, f.Object, f.Line = o.File, o.Kind+"/"+o.Name(), o.Line(f.Path)
	}
	slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	return found
}

// A check is a function that looks for one kind of mistake.
type check struct {
	Description
	run func(*subject)
}

// A Description says what a check is for.
type Description struct{ Name, About string }

// Checks describes all checks.
func Checks() []Description {
	out := []Description{{"fields", "The object has no unknown or repeated fields, and none of another type."}}
	for _, c := range checks {
		out = append(out, c.Description)
	}
	return append(out, dryRun)
}

// unwrap lists the errors that errors.Join has joined.
func unwrap(err error) []error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	return []error{err}
}
