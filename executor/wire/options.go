package wire

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"
	"sigs.k8s.io/yaml"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

// Annotations that a user writes.
const (
	// Policy names a JobPolicy, or holds the spec of one, as JSON or as YAML in braces.
	Policy = "jobpolicy.dev/policy"
	// DefaultPolicy of a namespace names the JobPolicy of those in it that have no annotation Policy.
	DefaultPolicy = "jobpolicy.dev/default-policy"
	// RunNow asks for a run of a CronJob. A Job that was created for that has it too.
	RunNow = "jobpolicy.dev/run-now"
)

// Annotations that the executor writes together with a status.
const (
	// NextScheduleTime is the annotation in which a CronJob has its CronJobStatus.next_schedule_time.
	NextScheduleTime = "jobpolicy.dev/next-schedule-time"
	// LastValidPolicy is the annotation in which a Job or CronJob that asks for options has the last valid ones, as the
	// spec of a JobPolicy in JSON. They count once those that it asks for cannot be read any more.
	LastValidPolicy = "jobpolicy.dev/last-valid-policy"
)

// Annotations of a CronJob in which the engine's records are kept (CronJobEdits).
const (
	observedSchedule     = "jobpolicy.dev/observed-schedule"
	failuresCountedUntil = "jobpolicy.dev/failures-counted-until"
)

// Annotation with which kubectl marks a Job that it creates from a CronJob's template, and so
// does jobpolicy.
const (
	instantiate         = "cronjob.kubernetes.io/instantiate"
	instantiateManually = "manual"
)

// Limits of the contract.
const (
	maxTextBytes    = 4096
	maxProblems     = 10
	maxProblemBytes = 1024
)

// HasPolicy reports whether an object asks for options.
func HasPolicy(annotations map[string]string) bool {
	_, has := annotations[Policy]
	return has
}

// PolicyName is the name of the JobPolicy that an object asks for by its annotation; false if it asks for none by
// name: it has no such annotation, or one that holds options itself.
func PolicyName(annotations map[string]string) (name string, named bool) {
	name, has := annotations[Policy]
	if !has || strings.HasPrefix(strings.TrimSpace(name), "{") {
		return "", false
	}
	return name, true
}

// PolicyOrigin says for people where the options of an object are: in the JobPolicy that its annotations name, in the
// annotation itself, or in the JobPolicy byDefault that its namespace names for those without an annotation; empty: it has none.
func PolicyOrigin(namespace string, annotations map[string]string, byDefault string) string {
	if name, named := PolicyName(annotations); named {
		return "JobPolicy " + name
	}
	switch {
	case HasPolicy(annotations):
		return "the annotation " + Policy
	case byDefault != "":
		return fmt.Sprintf("JobPolicy %s, the default of namespace %s", byDefault, namespace)
	}
	return ""
}

// readable are the specs of texts that were read lately. They are read at each reconcile, and many objects have
// the same text.
var readable = lru.New(1000)

// maxReadableBytes is the length of the longest text in it.
const maxReadableBytes = 4096

// PolicySpec reads the options that an object holds in its annotations; nil if it asks
// for none. A JobPolicy that it names is read elsewhere (package policy of the executor). problems say why they cannot be read, as the contract has them
// (JobSpec.option_problems); then spec is the last valid one (LastValid).
func PolicySpec(annotations map[string]string) (spec *jobpolicyv1.PolicySpec, problems []string) {
	text, has := annotations[Policy]
	if !has {
		return nil, nil
	}
	if name, named := PolicyName(annotations); named {
		problems = []string{Text(fmt.Sprintf("annotation %s names the JobPolicy %q, which is not known here", Policy, name), maxProblemBytes)}
		return LastValid(annotations), problems
	}
	spec, found := readSpec(text)
	if len(found) == 0 {
		return spec, nil
	}
	for _, p := range found[:min(len(found), maxProblems)] {
		problems = append(problems, problemText(p))
	}
	return LastValid(annotations), problems
}

// LastValid are the options in the annotation LastValidPolicy; nil if there are none that can be read. Whoever may write
// annotations can write this one, too: what holds for options in the annotation Policy holds for these.
func LastValid(annotations map[string]string) *jobpolicyv1.PolicySpec {
	text, has := annotations[LastValidPolicy]
	if !has {
		return nil
	}
	spec, problems := readSpec(text)
	if len(problems) > 0 {
		return nil
	}
	return spec
}

// readSpec reads the spec of a JobPolicy in JSON or YAML.
func readSpec(text string) (*jobpolicyv1.PolicySpec, []options.Problem) {
	if known, ok := readable.Get(text); ok {
		return proto.CloneOf(known.(*jobpolicyv1.PolicySpec)), nil
	}
	document, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, []options.Problem{{Description: fmt.Sprintf("expected JSON, or YAML in braces, found %s", err)}}
	}
	spec, problems := options.Parse(document)
	if len(problems) == 0 && len(text) <= maxReadableBytes {
		readable.Add(text, proto.CloneOf(spec))
	}
	return spec, problems
}

// WithLastValid sets the annotation LastValidPolicy of an object; an empty text removes it. A text for which the API
// server has no room beside the other annotations is left out: it would refuse the whole write.
func WithLastValid(object *metav1.ObjectMeta, text string) {
	annotations := maps.Clone(object.Annotations)
	delete(annotations, LastValidPolicy)
	if text != "" {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[LastValidPolicy] = text
		if validation.ValidateAnnotationsSize(annotations) != nil {
			delete(annotations, LastValidPolicy)
		}
	}
	object.Annotations = annotations
}

// jobOptions are the options that a Job holds in its annotations, which must fit its spec; with problems, the last valid
// ones.
func jobOptions(job *batchv1.Job) (*jobpolicyv1.JobOptions, []string) {
	policy, problems := PolicySpec(job.Annotations)
	if len(problems) == 0 {
		for _, p := range CheckOptions(job, policy.GetJob()) {
			problems = append(problems, problemText(p))
		}
	}
	if len(problems) == 0 {
		return policy.GetJob(), nil
	}
	return LastJobOptions(job, LastValid(job.Annotations)), problems
}

// LastJobOptions are the options of a Job in its last valid policy, which may be empty; nil if there is none, if they do
// not fit the Job's spec, or if the Job has finished: it is kept, because what it asks for may say for longer.
func LastJobOptions(job *batchv1.Job, policy *jobpolicyv1.PolicySpec) *jobpolicyv1.JobOptions {
	if policy == nil || FinishedCondition(job) != nil || len(CheckOptions(job, policy.GetJob())) > 0 {
		return nil
	}
	return cmp.Or(policy.GetJob(), &jobpolicyv1.JobOptions{})
}

// LastCronJobOptions are the options of a CronJob in its last valid policy, which may be empty; nil if there is none.
func LastCronJobOptions(policy *jobpolicyv1.PolicySpec) *jobpolicyv1.CronJobOptions {
	if policy == nil {
		return nil
	}
	return cmp.Or(policy.GetCronJob(), &jobpolicyv1.CronJobOptions{})
}

// CheckOptions says why options, wherever they are from, do not fit the spec of a Job; nil if they do. The engine
// refuses a request about a Job whose options do not fit. A field is a path from the spec of a JobPolicy.
func CheckOptions(job *batchv1.Job, o *jobpolicyv1.JobOptions) []options.Problem {
	return append(checkNeverStarted(job, o), checkRuleNames(job, o)...)
}

func checkNeverStarted(job *batchv1.Job, o *jobpolicyv1.JobOptions) []options.Problem {
	var problems []options.Problem
	for i, n := range o.GetNeverStarted() {
		if n.GetAction() == jobpolicyv1.NeverStartedAction_NEVER_STARTED_ACTION_FAIL_INDEX && job.Spec.BackoffLimitPerIndex == nil {
			problems = append(problems, options.Problem{
				Field: fmt.Sprintf("job.neverStarted[%d].action", i), Description: "FailIndex needs spec.backoffLimitPerIndex",
			})
		}
	}
	return problems
}

func checkRuleNames(job *batchv1.Job, o *jobpolicyv1.JobOptions) []options.Problem {
	rules := 0
	if job.Spec.PodFailurePolicy != nil {
		rules = len(job.Spec.PodFailurePolicy.Rules)
	}
	names := len(o.GetFailureRuleNames())
	if names == 0 || names == rules {
		return nil
	}
	return []options.Problem{{
		Field:       "job.failureRuleNames",
		Description: fmt.Sprintf("expected as many names as spec.podFailurePolicy has rules (%d), or none, found %d", rules, names),
	}}
}

func problemText(p options.Problem) string {
	return Text(fmt.Sprintf("annotation %s: %s", Policy, p), maxProblemBytes)
}

// readRecords reads what a user and earlier decisions have written into the annotations of a
// CronJob.
func readRecords(annotations map[string]string, into *jobpolicyv1.CronJobSpec) {
	into.RunNow = Text(annotations[RunNow], maxTextBytes)
	since, seen, _ := strings.Cut(annotations[observedSchedule], " ")
	if at, err := time.Parse(time.RFC3339, since); err == nil {
		into.ObservedSchedule = &jobpolicyv1.ObservedSchedule{Since: Timestamp(at), Schedule: Text(seen, maxTextBytes)}
	}
	if until, err := time.Parse(time.RFC3339, annotations[failuresCountedUntil]); err == nil {
		into.FailuresCountedUntil = Timestamp(until)
	}
}

// EditedAnnotations are the annotations in which a CronJob keeps what edits say; nil removes one.
// The error is about a time that is none.
func EditedAnnotations(edits *jobpolicyv1.CronJobEdits) (map[string]*string, error) {
	edited := map[string]*string{}
	if edits.GetClearRunNow() {
		edited[RunNow] = nil
	}
	if observed := edits.GetObservedSchedule(); observed != nil {
		if err := observed.GetSince().CheckValid(); err != nil {
			return nil, fmt.Errorf("observed_schedule.since: %w", err)
		}
		edited[observedSchedule] = new(observed.GetSince().AsTime().Format(time.RFC3339) + " " + observed.GetSchedule())
	}
	if until := edits.GetFailuresCountedUntil(); until != nil {
		if err := until.CheckValid(); err != nil {
			return nil, fmt.Errorf("failures_counted_until: %w", err)
		}
		edited[failuresCountedUntil] = new(until.AsTime().Format(time.RFC3339Nano))
	}
	return edited, nil
}

// RunAnnotations are the annotations by which the Job of a run is known again: those of the
// built-in controller for a run of the schedule, and RunNow for one that was asked for.
func RunAnnotations(create *jobpolicyv1.CreateJob) map[string]string {
	annotations := map[string]string{}
	if at := create.GetScheduledTime(); at != nil {
		annotations[batchv1.CronJobScheduledTimestampAnnotation] = inZone(at, create.GetUtcOffsetSeconds()).Format(time.RFC3339)
	}
	if text := create.GetRunNow(); text != "" {
		annotations[RunNow], annotations[instantiate] = text, instantiateManually
	}
	return annotations
}

func inZone(at *timestamppb.Timestamp, offset int32) time.Time {
	return at.AsTime().In(time.FixedZone("", int(offset)))
}
