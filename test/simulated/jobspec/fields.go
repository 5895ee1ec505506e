package jobspec

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor"
)

// A Field is a field of a Job's spec, or a kind of Job that a field makes.
type Field struct {
	Name string
	// Has reports whether a spec has it.
	Has func(*batchv1.JobSpec) bool
	// Values are the values that matter, each by its name.
	Values []Value
	// Reason is that of the Failed condition of Jobs that the field ends.
	Reason string
	// Decides: the field can end a Job whose pods still run.
	Decides bool
	// Edit draws a value that a user writes into the field; nil: no user does.
	Edit func(Source) string

	// percent of the specs that the field fits get it; set draws a value. fits may be nil.
	percent int
	fits    func(*batchv1.JobSpec) bool
	set     func(Source, *batchv1.JobSpec)
	// wide: a Job of many pods may draw another value.
	wide bool
	// simpler removes the field from a spec, or makes its value simpler; nil: it stays.
	simpler func(*batchv1.JobSpec)
}

// A Value is a value of a field, or a group of values.
type Value struct {
	Name string
	Has  func(*batchv1.JobSpec) bool
}

// always is the percentage of a field that every spec has.
const always = 100

// Fields are all fields, in the order in which they are drawn.
var Fields = slices.Concat(sizes, containers, limits, policies, frames)

// sizes are the kinds of Jobs, and how many pods they have.
var sizes = []Field{
	{Name: "Indexed", Has: Indexed, percent: 60, set: setIndexed},
	{
		Name: "completions", Has: func(s *batchv1.JobSpec) bool { return !Indexed(s) && s.Completions != nil },
		percent: 62, fits: func(s *batchv1.JobSpec) bool { return !Indexed(s) }, set: setCompletions,
		Values:  []Value{{"0", func(s *batchv1.JobSpec) bool { return isNumber(s.Completions, 0) }}},
		simpler: func(s *batchv1.JobSpec) { lower(s.Completions, 1) },
	},
	{Name: "work queue", Has: func(s *batchv1.JobSpec) bool { return s.Completions == nil }, Values: []Value{
		{"several pods", func(s *batchv1.JobSpec) bool { return s.Completions == nil && valueOr(s.Parallelism, 1) > 1 }},
		{"one pod", func(s *batchv1.JobSpec) bool { return s.Completions == nil && valueOr(s.Parallelism, 1) <= 1 }},
	}},
	{
		Name: "many pods", Has: func(s *batchv1.JobSpec) bool { return valueOr(s.Parallelism, 1) > 7 },
		percent: always, set: setParallelism,
		Values: []Value{
			{"parallelism 0", func(s *batchv1.JobSpec) bool { return isNumber(s.Parallelism, 0) }},
			{"parallelism less than completions", func(s *batchv1.JobSpec) bool {
				return s.Completions != nil && valueOr(s.Parallelism, 1) < *s.Completions
			}},
			{"parallelism more than completions", func(s *batchv1.JobSpec) bool {
				return s.Completions != nil && valueOr(s.Parallelism, 1) > *s.Completions
			}},
		},
		simpler: func(s *batchv1.JobSpec) { lower(s.Parallelism, 1) },
	},
}

var containers = []Field{
	{
		Name: "several containers", Has: func(s *batchv1.JobSpec) bool { return len(s.Template.Spec.Containers) > 1 },
		percent: 40, set: func(_ Source, s *batchv1.JobSpec) {
			s.Template.Spec.Containers = append(s.Template.Spec.Containers, corev1.Container{Name: Second, Image: "none"})
		},
		simpler: func(s *batchv1.JobSpec) {
			s.Template.Spec.Containers = s.Template.Spec.Containers[:min(1, len(s.Template.Spec.Containers))]
		},
	},
	initContainer("init container", corev1.Container{Name: First, Image: "none"}),
	initContainer("sidecar container", corev1.Container{Name: Side, Image: "none", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}),
}

func initContainer(name string, container corev1.Container) Field {
	same := func(c corev1.Container) bool { return Sidecar(c) == Sidecar(container) }
	return Field{
		Name:    name,
		Has:     func(s *batchv1.JobSpec) bool { return slices.ContainsFunc(s.Template.Spec.InitContainers, same) },
		percent: 18, set: func(_ Source, s *batchv1.JobSpec) {
			s.Template.Spec.InitContainers = append(s.Template.Spec.InitContainers, container)
		},
		simpler: func(s *batchv1.JobSpec) {
			s.Template.Spec.InitContainers = slices.DeleteFunc(s.Template.Spec.InitContainers, same)
		},
	}
}

// limits say how often pods may fail.
var limits = []Field{
	number(Field{Name: "backoffLimitPerIndex", Reason: batchv1.JobReasonFailedIndexes, percent: 40, fits: Indexed, set: func(d Source, s *batchv1.JobSpec) {
		s.BackoffLimitPerIndex = new(d.Between(0, d.IndexRetries))
	}, simpler: func(s *batchv1.JobSpec) { s.BackoffLimitPerIndex, s.MaxFailedIndexes = nil, nil }},
		func(s *batchv1.JobSpec) *int32 { return s.BackoffLimitPerIndex }),
	number(Field{Name: "maxFailedIndexes", Reason: batchv1.JobReasonMaxFailedIndexesExceeded, Decides: true, wide: true, percent: 50, fits: func(s *batchv1.JobSpec) bool {
		return s.BackoffLimitPerIndex != nil && valueOr(s.Completions, 0) > 0
	}, set: func(d Source, s *batchv1.JobSpec) {
		s.MaxFailedIndexes = new(d.Between(0, min(*s.Completions, d.few(2))))
	}, Edit: func(d Source) string { return d.number(0, 2) }, simpler: func(s *batchv1.JobSpec) { s.MaxFailedIndexes = nil }},
		func(s *batchv1.JobSpec) *int32 { return s.MaxFailedIndexes }),
	number(Field{Name: "backoffLimit", Reason: batchv1.JobReasonBackoffLimitExceeded, Decides: true, wide: true, percent: 80, fits: func(s *batchv1.JobSpec) bool {
		return s.BackoffLimitPerIndex == nil
	}, set: setBackoffLimit, simpler: func(s *batchv1.JobSpec) { s.BackoffLimit = nil }},
		func(s *batchv1.JobSpec) *int32 { return s.BackoffLimit }),
	// Few Jobs have both limits.
	{Name: "both backoff limits", Has: bothLimits, percent: 20, fits: func(s *batchv1.JobSpec) bool { return s.BackoffLimitPerIndex != nil }, set: setBackoffLimit},
}

func bothLimits(s *batchv1.JobSpec) bool {
	return s.BackoffLimit != nil && s.BackoffLimitPerIndex != nil
}

// number completes the row of a field that is a number.
func number(f Field, of func(*batchv1.JobSpec) *int32) Field {
	f.Has = func(s *batchv1.JobSpec) bool { return of(s) != nil }
	f.Values = []Value{
		{"0", func(s *batchv1.JobSpec) bool { return isNumber(of(s), 0) }},
		{"above 0", func(s *batchv1.JobSpec) bool { return valueOr(of(s), 0) > 0 }},
		{"unset", func(s *batchv1.JobSpec) bool { return of(s) == nil }},
	}
	return f
}

// policies say what becomes of a Job by the ends of its pods.
var policies = []Field{
	{
		Name: "successPolicy", Has: func(s *batchv1.JobSpec) bool { return s.SuccessPolicy != nil }, Values: successValues,
		Decides: true, wide: true, percent: 30, fits: func(s *batchv1.JobSpec) bool { return Indexed(s) && *s.Completions > 0 }, set: setSuccessPolicy,
		simpler: func(s *batchv1.JobSpec) { s.SuccessPolicy = nil },
	},
	{
		Name: "podFailurePolicy", Has: func(s *batchv1.JobSpec) bool { return s.PodFailurePolicy != nil }, Values: failureValues(),
		Reason: batchv1.JobReasonPodFailurePolicy, Decides: true, percent: 35, set: setFailurePolicy,
		simpler: func(s *batchv1.JobSpec) { s.PodFailurePolicy = nil },
	},
	{
		// A pod failure policy forbids it.
		Name: "OnFailure", Has: func(s *batchv1.JobSpec) bool { return s.Template.Spec.RestartPolicy == corev1.RestartPolicyOnFailure },
		percent: 25, fits: func(s *batchv1.JobSpec) bool { return s.PodFailurePolicy == nil },
		set:     func(_ Source, s *batchv1.JobSpec) { s.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure },
		simpler: func(s *batchv1.JobSpec) { s.Template.Spec.RestartPolicy = corev1.RestartPolicyNever },
	},
	{
		// It is Failed beside a pod failure policy, and TerminatingOrFailed else, if it is unset.
		Name: "podReplacementPolicy Failed", Has: func(s *batchv1.JobSpec) bool { return replacesFailed(s) },
		Values: []Value{
			{"set", func(s *batchv1.JobSpec) bool { return replacesFailed(s) && s.PodReplacementPolicy != nil }},
			{"default", func(s *batchv1.JobSpec) bool { return replacesFailed(s) && s.PodReplacementPolicy == nil }},
			{"no, set", func(s *batchv1.JobSpec) bool { return !replacesFailed(s) && s.PodReplacementPolicy != nil }},
			{"no, default", func(s *batchv1.JobSpec) bool { return !replacesFailed(s) && s.PodReplacementPolicy == nil }},
		},
		percent: 40, set: setReplacementPolicy, simpler: func(s *batchv1.JobSpec) { s.PodReplacementPolicy = nil },
	},
}

func replacesFailed(s *batchv1.JobSpec) bool {
	return valueOr(s.PodReplacementPolicy, "") == batchv1.Failed || s.PodReplacementPolicy == nil && s.PodFailurePolicy != nil
}

// frames are when and by whom a Job is run.
var frames = []Field{
	{
		Name: "created suspended", Has: func(s *batchv1.JobSpec) bool { return valueOr(s.Suspend, false) },
		percent: 14, set: func(_ Source, s *batchv1.JobSpec) { s.Suspend = new(true) }, simpler: func(s *batchv1.JobSpec) { s.Suspend = nil },
	},
	{
		Name: "activeDeadlineSeconds", Has: func(s *batchv1.JobSpec) bool { return s.ActiveDeadlineSeconds != nil },
		Reason: batchv1.JobReasonDeadlineExceeded, simpler: func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = nil },
	},
	{
		Name: "ttlSecondsAfterFinished", Has: func(s *batchv1.JobSpec) bool { return s.TTLSecondsAfterFinished != nil },
		simpler: func(s *batchv1.JobSpec) { s.TTLSecondsAfterFinished = nil },
	},
	{
		Name: "own selector", Has: func(s *batchv1.JobSpec) bool { return s.ManualSelector != nil },
		simpler: func(s *batchv1.JobSpec) { s.ManualSelector, s.Selector = nil, nil },
	},
	{Name: "managedBy", Has: func(s *batchv1.JobSpec) bool { return s.ManagedBy != nil }, Values: []Value{
		{"ours", managedBy(executor.ManagedBy)},
		{"kubernetes.io", managedBy(batchv1.JobControllerName)},
		{"another", managedBy(AnotherManager)},
	}, simpler: func(s *batchv1.JobSpec) { s.ManagedBy = nil }},
	{Name: "schedulingGates", Has: func(s *batchv1.JobSpec) bool { return len(s.Template.Spec.SchedulingGates) > 0 }},
}

// AnotherManager manages Jobs that are neither ours nor the built-in controller's.
const AnotherManager = "example.com/other"

func managedBy(name string) func(*batchv1.JobSpec) bool {
	return func(s *batchv1.JobSpec) bool { return valueOr(s.ManagedBy, "") == name }
}
