package controllers

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"jobpolicy.dev/proto/jobend"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/features"
)

// Where Jobs have no typed end, JobSets go on as before, also with rules that ask for one.
func TestFailurePolicyDecidesAsBefore(t *testing.T) {
	features.SetFeatureGateDuringTest(t, features.RestartJob, true)
	seen := map[string]int{}
	for seed := range uint64(2000) {
		before, jobs := drawFailure(rand.New(rand.NewPCG(seed, 1)))
		now := before.DeepCopy()
		var did, does statusUpdateOpts
		beforeErr := executeFailurePolicyBefore(t.Context(), before, jobs, &did)
		err := executeFailurePolicy(t.Context(), now, jobs, &does)
		if err != nil || beforeErr != nil {
			t.Fatalf("seed %d: JobSet as it is: %v, with typed ends: %v", seed, beforeErr, err)
		}
		written := cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")
		if diff := cmp.Diff(before.Status, now.Status, written) + cmp.Diff(texts(did), texts(does)); diff != "" {
			t.Fatalf("seed %d: JobSet as it is (-), with typed ends (+):\n%s\npolicy %+v", seed, diff, now.Spec.FailurePolicy)
		}
		for _, e := range did.events {
			seen[e.eventReason]++
		}
	}
	for _, reason := range []string{
		"FailedJobs", "ReachedMaxRestarts", "FailJobSetFailurePolicyAction", "DefaultFailurePolicy", "FailurePolicy_r0", "FailurePolicy_r1",
		"FailurePolicy_r2", "RestartJobFailurePolicyAction", "RestartJobAndIgnoreMaxRestartsFailurePolicyAction",
	} {
		if seen[reason] < 20 {
			t.Errorf("of 2000 JobSets %d have %s, want some; all are %v", seen[reason], reason, seen)
		}
	}
}

// texts are the events of a reconcile.
func texts(opts statusUpdateOpts) []string {
	var all []string
	for _, e := range opts.events {
		all = append(all, fmt.Sprint(e.eventType, e.eventReason, e.eventMessage))
	}
	return all
}

// drawnPatterns are about messages, about typed ends, and invalid.
var drawnPatterns = []string{
	"exit code 3", "^Job has", "OutOfMemory", ".*class=.*", "(", "jobpolicy.dev/class=OutOfMemory",
	memoryRule, "^jobpolicy.dev/class=Application$", inputRule, "^jobpolicy.dev/class=None$",
}

var drawnMessages = []string{
	"Job has reached the specified backoff limit", "Container main for pod default/a failed with exit code 3 matching FailJob rule at index 0",
	"the operator says: " + theWords, theWords + " and more", "x [rule=backoffLimitExceeded class=OutOfMemory]", "",
}

// drawFailure draws a JobSet with up to five rules, and one to four failed Jobs of it without a typed end.
func drawFailure(r *rand.Rand) (*jobset.JobSet, *childJobs) {
	some := func(of ...string) []string {
		r.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
		return of[:max(0, r.IntN(len(of)+2)-2)]
	}
	actions := []jobset.FailurePolicyAction{
		jobset.FailJobSet, jobset.RestartJobSet, jobset.RestartJobSetAndIgnoreMaxRestarts, jobset.RestartJob, jobset.RestartJobAndIgnoreMaxRestarts,
	}
	reasons := []string{"BackoffLimitExceeded", "DeadlineExceeded", "PodFailurePolicy"}
	js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}
	js.Spec.ReplicatedJobs = []jobset.ReplicatedJob{{Name: "g0", Replicas: 4}, {Name: "g1", Replicas: 4}}
	js.Status.ReplicatedJobsStatus = []jobset.ReplicatedJobStatus{{Name: "g0"}, {Name: "g1"}}
	js.Status.RestartsCountTowardsMax = int32(r.IntN(3))
	if r.IntN(10) > 0 {
		js.Spec.FailurePolicy = &jobset.FailurePolicy{MaxRestarts: int32(r.IntN(4))}
		for i := range r.IntN(6) {
			js.Spec.FailurePolicy.Rules = append(js.Spec.FailurePolicy.Rules, jobset.FailurePolicyRule{
				Name:                        fmt.Sprint("r", i),
				Action:                      actions[r.IntN(len(actions))],
				OnJobFailureReasons:         some(slices.Clone(reasons)...),
				OnJobFailureMessagePatterns: some(slices.Clone(drawnPatterns)...),
				TargetReplicatedJobs:        some("g0", "g1"),
			})
		}
	}
	jobs := &childJobs{}
	for i := range 1 + r.IntN(4) {
		job := jobOf(fmt.Sprint("g", r.IntN(2)), i)
		job.Name = fmt.Sprint("job-", i)
		if r.IntN(8) == 0 {
			job.Labels = nil
		}
		job.Status.Conditions = []batchv1.JobCondition{{
			Type: batchv1.JobFailed, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(int64(r.IntN(3)), 0),
			Reason: reasons[r.IntN(len(reasons))], Message: drawnMessages[r.IntN(len(drawnMessages))],
		}}
		jobs.failed = append(jobs.failed, job)
	}
	return js, jobs
}

const (
	outOfMemory = jobpolicyv1.EndClass_END_CLASS_OUT_OF_MEMORY
	ofPolicy    = jobpolicyv1.EndClass_END_CLASS_POLICY
	application = jobpolicyv1.EndClass_END_CLASS_APPLICATION

	memoryRule = "^jobpolicy.dev/class=OutOfMemory$"
	inputRule  = "^jobpolicy.dev/policyRuleName=bad-input$"
	// theWords are those of memoryRule, as a text.
	theWords = "jobpolicy.dev/class=OutOfMemory"
)

func TestRulesMatchTypedEnds(t *testing.T) {
	memory, failed := &jobpolicyv1.JobEnd{Class: outOfMemory}, &jobpolicyv1.JobEnd{Class: application}
	input := &jobpolicyv1.JobEnd{Class: ofPolicy, PolicyRuleName: "bad-input"}
	said := &jobpolicyv1.JobEnd{Class: application, Failures: []*jobpolicyv1.EndFailure{{TerminationMessage: theWords + " policyRuleName=bad-input]"}}}
	for name, tc := range map[string]struct {
		end     *jobpolicyv1.JobEnd
		pattern string
		message string
		want    bool
	}{
		"the class":                         {end: memory, pattern: memoryRule, want: true},
		"another class":                     {end: failed, pattern: memoryRule},
		"the name of the rule":              {end: input, pattern: inputRule, want: true},
		"another rule":                      {end: &jobpolicyv1.JobEnd{Class: ofPolicy, PolicyRuleName: "bad-input-2"}, pattern: inputRule},
		"the class beside the rule":         {end: &jobpolicyv1.JobEnd{Class: outOfMemory, PolicyRuleName: "bad-input"}, pattern: memoryRule, want: true},
		"the message is that text":          {end: failed, pattern: memoryRule, message: theWords},
		"no end, the message is that text":  {pattern: memoryRule, message: theWords},
		"a pod said the class":              {end: said, pattern: memoryRule},
		"a pod said the name of a rule":     {end: said, pattern: inputRule},
		"a pattern of the message":          {end: memory, pattern: "exit code 3", message: "failed with exit code 3", want: true},
		"a pattern of the message, not met": {end: memory, pattern: "exit code 3", message: "failed with exit code 4"},
	} {
		job := jobOf("g0", 0)
		if tc.end != nil {
			job.Status.Conditions = []batchv1.JobCondition{endConditionOf(tc.end)}
		}
		rule := jobset.FailurePolicyRule{OnJobFailureMessagePatterns: []string{"never", tc.pattern}}
		if got := ruleIsApplicable(t.Context(), rule, job, "PodFailurePolicy", tc.message); got != tc.want {
			t.Errorf("%s: applies is %v, want %v", name, got, tc.want)
		}
	}
}

// What is no typed end matches nothing.
func TestConditionsThatAreNoTypedEnd(t *testing.T) {
	for name, condition := range map[string]batchv1.JobCondition{
		"not true":                   endCondition("OutOfMemory", "x [pod=p]", corev1.ConditionFalse),
		"not closed":                 endCondition("OutOfMemory", "x [pod=p", corev1.ConditionTrue),
		"a class of a newer version": endCondition("OutOfDisk", "x [pod=p]", corev1.ConditionTrue),
		"another condition":          {Type: "example.com/FailureClassified", Status: corev1.ConditionTrue, Reason: "OutOfMemory", Message: "x [pod=p]"},
	} {
		job := &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{condition}}}
		if failureMatches(t.Context(), []string{memoryRule}, job, "") {
			t.Errorf("%s: matches", name)
		}
	}
}

// A pattern that names no part of an end matches nothing, and the log says what is expected.
func TestInvalidTypedPatterns(t *testing.T) {
	job := &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{
		endConditionOf(&jobpolicyv1.JobEnd{Class: ofPolicy}),
	}}}
	for pattern, want := range map[string]string{
		"^jobpolicy.dev/class=OutOfMemroy$": "expected one such as OutOfMemory",
		"^jobpolicy.dev/class=Unspecified$": "expected one such as OutOfMemory",
		"^jobpolicy.dev/class=Poli.*$":      "expected one such as OutOfMemory",
		"^jobpolicy.dev/policyRuleName=$":   "expected class=... or policyRuleName=...",
		"^jobpolicy.dev/pod=a$":             "expected class=... or policyRuleName=...",
		"^jobpolicy.dev/":                   "expected class=... or policyRuleName=...",
	} {
		var log strings.Builder
		ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(_, args string) { log.WriteString(args) }, funcr.Options{}))
		if failureMatches(ctx, []string{pattern}, job, "class=Policy") || !strings.Contains(log.String(), want) {
			t.Errorf("%s matches, or the log does not say %q: %s", pattern, want, &log)
		}
		if log.Reset(); !failureMatches(ctx, []string{pattern, "^jobpolicy.dev/class=Policy$"}, job, "") {
			t.Errorf("beside %s the other pattern does not match", pattern)
		}
	}
}

func endConditionOf(end *jobpolicyv1.JobEnd) batchv1.JobCondition {
	return endCondition(jobend.ClassName(end.GetClass()), jobend.Message(end), corev1.ConditionTrue)
}

func endCondition(reason, message string, status corev1.ConditionStatus) batchv1.JobCondition {
	return batchv1.JobCondition{Type: jobend.ConditionType, Status: status, Reason: reason, Message: message}
}

// No call is made: it measures how long it takes to read a condition.
func BenchmarkTypedEnd(b *testing.B) {
	job := jobOf("g0", 0)
	job.Status.Conditions = []batchv1.JobCondition{endConditionOf(&jobpolicyv1.JobEnd{
		Class: outOfMemory, Rule: jobpolicyv1.Rule_RULE_BACKOFF_LIMIT_EXCEEDED,
		PodName: "a-b-0-0-x7k2p", ContainerName: "main", ExitCode: 137, Reason: "OOMKilled", Tries: 1,
	})}
	rule := jobset.FailurePolicyRule{OnJobFailureMessagePatterns: []string{memoryRule}}
	measure(b, func() error {
		if !ruleIsApplicable(b.Context(), rule, job, "BackoffLimitExceeded", "") {
			return fmt.Errorf("the rule does not apply")
		}
		return nil
	})
}
