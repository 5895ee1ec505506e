package jobspec

import (
	"fmt"
	"math/rand/v2"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// Names of the containers of drawn pods, beside Main: a second one, an init container,
// and a sidecar.
const (
	Main, Second = "main", "second"
	First, Side  = "first", "side"
)

// Exits are the exit codes of containers and of failure policy rules.
var Exits = []int32{1, 3, 42, 137}

// A Style says how large drawn specs are.
type Style struct {
	// Most is the largest number of completions and of pods at once.
	Most int32
	// Together: in this percentage of the Jobs, all pods may run at once.
	Together int
	// Retries and IndexRetries are the largest backoffLimit and backoffLimitPerIndex.
	Retries, IndexRetries int32
}

// A Source draws specs.
type Source struct {
	*rand.Rand
	Style
	// widened: the Job has many pods.
	widened bool
}

// New returns a spec with one container and no other field.
func New() batchv1.JobSpec {
	return batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: Main, Image: "none"}},
	}}}
}

// Spec draws a spec.
func (d Source) Spec() batchv1.JobSpec {
	spec := New()
	for _, f := range Fields {
		if f.set != nil && (f.fits == nil || f.fits(&spec)) && d.Chance(f.percent) {
			f.set(d, &spec)
		}
	}
	return spec
}

// Widen lets a Job have many pods, at most n at once. Some fields get larger values, too.
func (d Source) Widen(spec *batchv1.JobSpec, n int32) {
	d.Style, d.widened = Style{Most: n, Retries: n, IndexRetries: d.IndexRetries}, true
	spec.Parallelism = new(d.Between(8, n))
	if spec.Completions != nil {
		spec.Completions = &n
	}
	for _, f := range Fields {
		if f.wide && f.Has(spec) && d.Chance(50) {
			f.set(d, spec)
		}
	}
}

// Chance is true in percent of 100 cases.
func (d Source) Chance(percent int) bool { return d.IntN(100) < percent }

// Between draws a number between two, these included.
func (d Source) Between(low, high int32) int32 { return low + d.Int32N(high-low+1) }

// Pick draws one of several values.
func Pick[T any](d Source, from ...T) T { return from[d.IntN(len(from))] }

func (d Source) number(low, high int32) string { return fmt.Sprint(d.Between(low, high)) }

// few is a limit of numbers that are small unless the Job is large.
func (d Source) few(n int32) int32 {
	if d.widened {
		return d.Most
	}
	return n
}

func setIndexed(d Source, s *batchv1.JobSpec) {
	s.CompletionMode = new(batchv1.IndexedCompletion)
	setCompletions(d, s)
}

func setCompletions(d Source, s *batchv1.JobSpec) {
	s.Completions = new(d.Between(1, d.Most))
	if d.Chance(4) {
		s.Completions = new(int32(0))
	}
}

func setParallelism(d Source, s *batchv1.JobSpec) {
	switch {
	case d.Chance(5):
		s.Parallelism = new(int32(0))
	case s.Completions != nil && d.Chance(d.Together):
		s.Parallelism = new(max(1, *s.Completions))
	default:
		s.Parallelism = new(d.Between(1, d.Most))
	}
}

func setBackoffLimit(d Source, s *batchv1.JobSpec) {
	if d.widened {
		s.BackoffLimit = new(d.Retries)
		return
	}
	s.BackoffLimit = new(d.Between(0, d.Retries))
}

func setReplacementPolicy(d Source, s *batchv1.JobSpec) {
	s.PodReplacementPolicy = new(batchv1.Failed) // The only policy that a pod failure policy allows.
	if s.PodFailurePolicy == nil && d.Chance(50) {
		s.PodReplacementPolicy = new(batchv1.TerminatingOrFailed)
	}
}
