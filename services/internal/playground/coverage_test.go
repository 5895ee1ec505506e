package playground

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/engine/simulate"
	"jobpolicy.dev/services/internal/testenv"
)

// A field's effect is what a Job of two pods, the first of which fails, does without and
// with a value of it. By default, a Job without the field has a zero value of it.
type effect struct{ without, with func(*batchv1.Job) }

func pod(job *batchv1.Job) *corev1.PodSpec { return &job.Spec.Template.Spec }

func indexed(job *batchv1.Job) { job.Spec.CompletionMode = new(batchv1.IndexedCompletion) }

func failOn42(job *batchv1.Job) {
	job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action:      batchv1.PodFailurePolicyActionFailJob,
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{42}},
	}}}
}

func restartRule(job *batchv1.Job) *corev1.ContainerRestartRule {
	c := &pod(job).Containers[0]
	c.RestartPolicy = new(corev1.ContainerRestartPolicyNever)
	c.RestartPolicyRules = []corev1.ContainerRestartRule{{
		Action:    corev1.ContainerRestartRuleActionRestart,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
	}}
	return &c.RestartPolicyRules[0]
}

// played has an effect of each field that is played, refused a value of each field that is
// refused.
var played = map[string]effect{
	"Job parallelism":           {with: func(job *batchv1.Job) { job.Spec.Parallelism = new(int32(2)) }},
	"Job completions":           {with: func(job *batchv1.Job) { job.Spec.Completions = new(int32(3)) }},
	"Job completionMode":        {with: indexed},
	"Job activeDeadlineSeconds": {with: func(job *batchv1.Job) { job.Spec.ActiveDeadlineSeconds = new(int64(2)) }},
	"Job backoffLimit":          {with: func(job *batchv1.Job) { job.Spec.BackoffLimit = new(int32(0)) }},
	"Job backoffLimitPerIndex":  {indexed, func(job *batchv1.Job) { indexed(job); job.Spec.BackoffLimitPerIndex = new(int32(0)) }},
	"Job maxFailedIndexes": {
		func(job *batchv1.Job) { indexed(job); job.Spec.BackoffLimitPerIndex = new(int32(0)) },
		func(job *batchv1.Job) {
			indexed(job)
			job.Spec.BackoffLimitPerIndex, job.Spec.MaxFailedIndexes = new(int32(0)), new(int32(0))
		},
	},
	"Job podFailurePolicy": {with: failOn42},
	"Job successPolicy": {func(job *batchv1.Job) { indexed(job); job.Spec.Parallelism = new(int32(2)) }, func(job *batchv1.Job) {
		indexed(job)
		job.Spec.Parallelism = new(int32(2))
		job.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededCount: new(int32(1))}}}
	}},
	"Job podReplacementPolicy": {
		func(job *batchv1.Job) { pod(job).ActiveDeadlineSeconds = new(int64(20)) },
		func(job *batchv1.Job) { job.Spec.PodReplacementPolicy = new(batchv1.Failed) },
	},
	"Job suspend":                 {with: func(job *batchv1.Job) { job.Spec.Suspend = new(true) }},
	"Job ttlSecondsAfterFinished": {with: func(job *batchv1.Job) { job.Spec.TTLSecondsAfterFinished = new(int32(9)) }},
	"Job template":                {with: func(job *batchv1.Job) { pod(job).RestartPolicy = corev1.RestartPolicyOnFailure }},
	"pod containers": {with: func(job *batchv1.Job) {
		pod(job).Containers = append(pod(job).Containers, corev1.Container{Name: "ui", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)})
	}},
	"pod initContainers": {with: func(job *batchv1.Job) {
		pod(job).InitContainers = []corev1.Container{{Name: "proxy", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
	}},
	"pod restartPolicy":         {with: func(job *batchv1.Job) { pod(job).RestartPolicy = corev1.RestartPolicyOnFailure }},
	"pod activeDeadlineSeconds": {with: func(job *batchv1.Job) { pod(job).ActiveDeadlineSeconds = new(int64(3)) }},
	"pod terminationGracePeriodSeconds": {
		func(job *batchv1.Job) { pod(job).ActiveDeadlineSeconds = new(int64(3)) },
		func(job *batchv1.Job) {
			pod(job).ActiveDeadlineSeconds, pod(job).TerminationGracePeriodSeconds = new(int64(3)), new(int64(4))
		},
	},
	"container name": {failOn42, func(job *batchv1.Job) { failOn42(job); pod(job).Containers[0].Name = "other" }},
	"container restartPolicy": {with: func(job *batchv1.Job) {
		pod(job).Containers[0].RestartPolicy = new(corev1.ContainerRestartPolicyOnFailure)
	}},
	"container restartPolicyRules": {with: func(job *batchv1.Job) { restartRule(job) }},
	"rule exitCodes":               {func(job *batchv1.Job) { restartRule(job) }, func(job *batchv1.Job) { restartRule(job).ExitCodes.Values = []int32{7} }},
	"rule operator": {func(job *batchv1.Job) { restartRule(job) }, func(job *batchv1.Job) {
		restartRule(job).ExitCodes.Operator = corev1.ContainerRestartRuleOnExitCodesOpNotIn
	}},
	"rule values": {func(job *batchv1.Job) { restartRule(job) }, func(job *batchv1.Job) { restartRule(job).ExitCodes.Values = []int32{7} }},
	"rule action": {with: func(job *batchv1.Job) { restartRule(job) }},
}

var refused = map[string]func(*batchv1.Job){
	"pod schedulingGates":     func(job *batchv1.Job) { pod(job).SchedulingGates = []corev1.PodSchedulingGate{{Name: "a/b"}} },
	"pod ephemeralContainers": func(job *batchv1.Job) { pod(job).EphemeralContainers = []corev1.EphemeralContainer{{}} },
	"rule action": func(job *batchv1.Job) {
		restartRule(job).Action = corev1.ContainerRestartRuleActionRestartAllContainers
	},
}

// playOf plays a Job. Its first container fails with exit code 42, and then succeeds.
func playOf(t *testing.T, changes ...func(*batchv1.Job)) (Report, error) {
	t.Helper()
	job := &batchv1.Job{Spec: batchv1.JobSpec{
		Parallelism: new(int32(1)), Completions: new(int32(2)), BackoffLimit: new(int32(2)),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main"}},
		}},
	}}
	for _, change := range changes {
		if change != nil {
			change(job)
		}
	}
	fails := []simulate.Outcome{{Ending: simulate.Fails, ExitCode: 42, After: 5 * time.Second}}
	sc, err := Scenario(job, simulate.Scenario{Scripts: []simulate.Script{{Outcomes: fails}}, StopDelay: 10 * time.Second, Runtime: simulate.Runtime{Mean: 30 * time.Second}})
	if err != nil {
		return Report{}, err
	}
	r, err := simulate.Play(sc)
	if err != nil {
		return Report{}, err
	}
	return NewReport("job", r)
}

var backticked = regexp.MustCompile("`([^`]+)`")

// coverage reads testdata/fields.txt, which docs/kubectl.md links: what a play does with each field.
func coverage(t *testing.T) map[string]string {
	t.Helper()
	_, text, _ := strings.Cut(string(testenv.ReadFile(t, "testdata/fields.txt")), "| of | fields | in a play |")
	text, _, _ = strings.Cut(text, "\n\n")
	out := map[string]string{}
	for line := range strings.SplitSeq(text, "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 {
			continue
		}
		for _, m := range backticked.FindAllStringSubmatch(cells[1], -1) {
			name := strings.TrimPrefix(cells[0], "| ") + " " + m[1]
			if out[name] != "" {
				t.Errorf("testdata/fields.txt has two rows for %s", name)
			}
			out[name] = strings.ToLower(cells[2])
		}
	}
	return out
}

// The table names every field, and no other one. Each field that it calls played changes a
// play, and each one that it calls refused is refused by name.
func TestEveryFieldIsPlayedIgnoredOrRefused(t *testing.T) {
	rows := coverage(t)
	for of, structs := range map[string][]any{
		"Job": {batchv1.JobSpec{}}, "pod": {corev1.PodSpec{}}, "container": {corev1.Container{}},
		"rule": {corev1.ContainerRestartRule{}, corev1.ContainerRestartRuleOnExitCodes{}},
	} {
		for _, s := range structs {
			for i := range reflect.TypeOf(s).NumField() {
				tag := reflect.TypeOf(s).Field(i).Tag.Get("json")
				field, _, _ := strings.Cut(tag, ",")
				name := of + " " + field
				t.Run(name, func(t *testing.T) { checkField(t, name, rows[name]) })
				delete(rows, name)
			}
		}
	}
	for name := range rows {
		t.Errorf("testdata/fields.txt has a row for %s, which is no field", name)
	}
}

func checkField(t *testing.T, name, row string) {
	e, isPlayed := played[name]
	if isPlayed != strings.HasPrefix(row, "played") {
		t.Errorf("the table says %q; there is a play with the field: %v", row, isPlayed)
	}
	change, isRefused := refused[name]
	if isRefused != strings.Contains(row, "refused") {
		t.Errorf("the table says %q; there is a value that is refused: %v", row, isRefused)
	}
	if row == "" || !isPlayed && !isRefused && !strings.HasPrefix(row, "ignored: ") {
		t.Errorf("the table says %q, want played, refused, or ignored and why", row)
	}
	if isPlayed {
		without, err1 := playOf(t, e.without)
		with, err2 := playOf(t, e.with)
		if err1 != nil || err2 != nil || cmp.Equal(without, with) {
			t.Errorf("plays without and with the field are the same, or errors: %v, %v\n%v", err1, err2, with.Timeline)
		}
	}
	if isRefused {
		_, err := playOf(t, change)
		_, field, _ := strings.Cut(name, " ")
		testenv.WantError(t, err, field)
		testenv.WantError(t, err, "is not played")
	}
}
