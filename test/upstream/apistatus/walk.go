package apistatus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedbatchv1 "k8s.io/client-go/kubernetes/typed/batch/v1"

	"jobpolicy.dev/engine/statusrules"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/test/kit/controlplane"
)

// stepsPerJob is how many statuses a walker writes to a Job before it creates a new
// one. There are fewer after the Job is finished, because most statuses after that are
// bad.
const (
	stepsPerJob   = 40
	stepsFinished = 6
)

// server is what the rules are asked about: the API server that runs here.
var server = statusrules.Default(minor())

func minor() int32 {
	if asked := controlplane.Minor(); asked != 0 {
		return int32(asked)
	}
	return statusrules.NewestMinor
}

// A walker writes statuses to one Job after another.
type walker struct {
	drawer
	jobs typedbatchv1.JobInterface
	name string

	job    *batchv1.Job // as the API server holds it
	before *jobpolicyv1.JobStatus
	seen   tally
}

// A tally counts what happened in a walk.
type tally struct {
	legal, bad int
	broken     map[string]int // by rule
	unchecked  int            // legal only because nothing changed of what is wrong
}

func newWalker(jobs typedbatchv1.JobInterface, seed, number uint64) *walker {
	return &walker{
		drawer: drawer{rand.New(rand.NewPCG(seed, number))}, jobs: jobs, name: fmt.Sprintf("walk-%d", number),
		seen: tally{broken: map[string]int{}},
	}
}

// walk writes n statuses. An error is a difference between the rules and the API
// server, or a request that failed.
func (w *walker) walk(ctx context.Context, n int) error {
	for left := 0; n > 0; n, left = n-1, left-1 {
		if left <= 0 {
			if err := w.renew(ctx); err != nil {
				return err
			}
			left = stepsPerJob
		}
		if w.once(12) {
			if err := w.edit(ctx); err != nil {
				return err
			}
		}
		if err := w.step(ctx); err != nil {
			return err
		}
		if is(w.before, complete) || is(w.before, failed) {
			left = min(left, stepsFinished)
		}
	}
	return nil
}

// renew replaces the old Job by a new one.
func (w *walker) renew(ctx context.Context) error {
	background := metav1.DeletePropagationBackground
	if w.job != nil {
		if err := w.jobs.Delete(ctx, w.name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
			return err
		}
	}
	var err error
	w.job, err = w.jobs.Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: w.name}, Spec: w.newSpec()}, metav1.CreateOptions{})
	w.before = &jobpolicyv1.JobStatus{}
	return err
}

// newSpec draws a spec of any shape that the rules distinguish. managedBy must make no
// difference.
func (w *walker) newSpec() batchv1.JobSpec {
	spec := batchv1.JobSpec{
		Parallelism: new(int32(w.IntN(4))), Suspend: new(w.once(3)),
		Completions: pick(w.drawer, nil, new(int32(0)), new(int32(1)), new(int32(3)), new(int32(5))),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "none"}},
		}},
	}
	if w.once(3) {
		spec.ManagedBy = new("example.com/controller")
	}
	if w.once(3) {
		return spec
	}
	if spec.Completions == nil {
		spec.Completions = new(int32(4))
	}
	if w.once(2) {
		*spec.Parallelism = *spec.Completions
	}
	spec.CompletionMode = new(batchv1.IndexedCompletion)
	if !w.once(3) {
		spec.BackoffLimitPerIndex = new(int32(1))
	}
	if w.once(3) && *spec.Completions > 0 {
		spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededCount: new(int32(1))}}}
	}
	return spec
}

// edit changes the spec of a Job that has a status: suspended or not, or another size.
func (w *walker) edit(ctx context.Context) error {
	job := w.job.DeepCopy()
	elastic := job.Spec.CompletionMode != nil && *job.Spec.CompletionMode == batchv1.IndexedCompletion &&
		*job.Spec.Completions == *job.Spec.Parallelism && job.Spec.SuccessPolicy == nil
	if elastic && w.once(2) {
		size := int32(1 + w.IntN(5))
		job.Spec.Completions, job.Spec.Parallelism = &size, &size
	} else {
		job.Spec.Suspend = new(!*job.Spec.Suspend)
	}
	edited, err := w.jobs.Update(ctx, job, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("edit the spec: %w", err)
	}
	w.job = edited
	return nil
}

// step writes one status and compares the API server's answer with the rules.
func (w *walker) step(ctx context.Context) error {
	spec, err := wire.JobSpec(w.job)
	if err != nil {
		return err
	}
	after := w.next(spec, w.before)
	transition := statusrules.Transition{Spec: spec, Before: w.before, After: after}
	violations := server.Check(transition)

	job := w.job.DeepCopy()
	job.Status = written(after)
	updated, err := w.jobs.UpdateStatus(ctx, job, metav1.UpdateOptions{})
	blamed, err := blamedFields(err)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(blamed, fieldsOf(violations)); diff != "" {
		return fmt.Errorf("fields blamed (-API server +rules):\n%s%s", diff, described(transition, violations))
	}
	w.seen.add(transition, violations)
	if updated == nil || len(blamed) > 0 {
		return nil
	}
	w.job, w.before = updated, after
	return w.readBack(after)
}

// blamedFields returns the fields that the API server names when it refuses a status,
// sorted. Any other error is returned.
func blamedFields(err error) ([]string, error) {
	if err == nil {
		return nil, nil
	}
	refusal, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsInvalid(err) {
		return nil, err
	}
	var fields []string
	for _, cause := range refusal.Status().Details.Causes {
		fields = append(fields, cause.Field)
	}
	slices.Sort(fields)
	return fields, nil
}

func fieldsOf(violations []statusrules.Violation) []string {
	var fields []string
	for _, v := range violations {
		fields = append(fields, v.Field)
	}
	slices.Sort(fields)
	return fields
}

// readBack compares the executor's conversion with what was written.
func (w *walker) readBack(after *jobpolicyv1.JobStatus) error {
	got, err := wire.JobStatus(&w.job.Status)
	if err != nil {
		return fmt.Errorf("read the status back: %w", err)
	}
	if diff := cmp.Diff(read(after), got, protocmp.Transform()); diff != "" {
		return fmt.Errorf("status (-written +read back):\n%s", diff)
	}
	return nil
}

// read is a status as the conversion returns it: with ranges merged, without empty
// parts, and with one condition of each type that rules are about.
func read(s *jobpolicyv1.JobStatus) *jobpolicyv1.JobStatus {
	out := proto.CloneOf(s)
	out.CompletedIndexes, out.FailedIndexes = joined(s.GetCompletedIndexes()), joined(s.GetFailedIndexes())
	if len(out.GetCompletedIndexes().GetRanges()) == 0 {
		out.CompletedIndexes = nil
	}
	if len(s.GetUncounted().GetSucceeded())+len(s.GetUncounted().GetFailed()) == 0 {
		out.Uncounted = nil
	}
	out.Conditions = nil
	for _, c := range s.GetConditions() {
		at := slices.IndexFunc(out.Conditions, func(o *jobpolicyv1.JobCondition) bool { return o.GetType() == c.GetType() })
		switch {
		case c.GetType() == other:
		case at < 0:
			out.Conditions = append(out.Conditions, c)
		case c.GetStatus() == isTrue && !is(out, c.GetType()):
			out.Conditions[at] = c
		}
	}
	return out
}

func joined(set *jobpolicyv1.IndexSet) *jobpolicyv1.IndexSet {
	if set == nil {
		return nil
	}
	out := &jobpolicyv1.IndexSet{}
	for _, r := range set.GetRanges() {
		if n := len(out.Ranges); n > 0 && out.Ranges[n-1].Last+1 == r.First {
			out.Ranges[n-1].Last = r.Last
			continue
		}
		out.Ranges = append(out.Ranges, proto.CloneOf(r))
	}
	return out
}

func described(t statusrules.Transition, violations []statusrules.Violation) string {
	text := fmt.Sprintf("spec:\n%sbefore:\n%safter:\n%srules:\n",
		prototext.Format(t.Spec), prototext.Format(t.Before), prototext.Format(t.After))
	for _, v := range violations {
		text += "  " + v.String() + "\n"
	}
	return text
}

func (y *tally) add(t statusrules.Transition, violations []statusrules.Violation) {
	if len(violations) > 0 {
		y.bad++
		for _, rule := range rulesOf(violations) {
			y.broken[rule]++
		}
		return
	}
	y.legal++
	if len(server.Check(statusrules.Transition{Spec: t.Spec, After: t.After})) > 0 {
		y.unchecked++
	}
}

// rulesOf are the rules that are broken, each once.
func rulesOf(violations []statusrules.Violation) []string {
	var rules []string
	for _, v := range violations {
		rules = append(rules, v.Rule)
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}
