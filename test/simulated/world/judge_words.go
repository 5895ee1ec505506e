package world

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// A saying is what a condition of a type may say. Kubernetes' ones are those that its Job controller, v1.37,
// writes; users and programs read them. The three below are ours.
type saying struct {
	reason, message string
	// wrong says why the message is not true, given what its groups matched; empty if it is. Nil: it is.
	wrong func(j *judge, r *jobRecord, next *batchv1.Job, groups []string) string
}

var (
	successes = []saying{
		{reason: batchv1.JobReasonCompletionsReached, message: `Reached expected number of succeeded pods`},
		{reason: batchv1.JobReasonSuccessPolicy, message: `Matched rules at index (\d+)`, wrong: (*judge).wrongSuccessRule},
	}
	failures = []saying{
		{reason: batchv1.JobReasonBackoffLimitExceeded, message: `Job has reached the specified backoff limit`},
		{reason: batchv1.JobReasonDeadlineExceeded, message: `Job was active longer than specified deadline`},
		{reason: batchv1.JobReasonMaxFailedIndexesExceeded, message: `Job has exceeded the specified maximal number of failed indexes`},
		{reason: batchv1.JobReasonFailedIndexes, message: `Job has failed indexes`},
		{reason: batchv1.JobReasonPodFailurePolicy, message: `Container (\S+) for pod (\S+)/(\S+) failed with exit code (\d+) matching FailJob rule at index (\d+)`, wrong: (*judge).wrongExit},
		{reason: batchv1.JobReasonPodFailurePolicy, message: `Pod (\S+)/(\S+) has condition (\S+) matching FailJob rule at index (\d+)`, wrong: (*judge).wrongPodCondition},
		{reason: "StartDeadlineExceeded", message: `No pod of the Job ran before its deadline to start`},
		{reason: "PodNeverStarted", message: `Pod (\S+)/(\S+) did not start within (\d+)s: .+`, wrong: (*judge).wrongUnstarted},
	}
	sayings = map[batchv1.JobConditionType][]saying{
		batchv1.JobSuccessCriteriaMet: successes, batchv1.JobComplete: successes,
		batchv1.JobFailureTarget: failures, batchv1.JobFailed: failures,
		batchv1.JobSuspended: {
			{reason: "JobSuspended", message: `Job suspended`}, {reason: "JobResumed", message: `Job resumed`},
		},
		startedCondition: {
			{reason: "PodRan", message: `A pod of the Job has run`}, {reason: "NoPodRan", message: `No pod of the Job has run since it started`},
		},
	}
	// trueFor are the reasons that are given with one status only.
	trueFor = map[string]corev1.ConditionStatus{
		"JobSuspended": corev1.ConditionTrue, "JobResumed": corev1.ConditionFalse, "PodRan": corev1.ConditionTrue, "NoPodRan": corev1.ConditionFalse,
	}
)

// startedCondition is our condition that a pod of the Job has run.
const startedCondition batchv1.JobConditionType = "jobpolicy.dev/Started"

// judgeWords: a condition that an executor writes says what it means, at the time at which it was written, and
// the others stay as they are, in their order. The terminal condition repeats the interim one.
func (j *judge) judgeWords(w apiserver.Write, r *jobRecord, next *batchv1.Job) {
	for i := range next.Status.Conditions {
		c := &next.Status.Conditions[i]
		before := condition(r.job, c.Type)
		if before != nil && before.Status == c.Status && before.Reason == c.Reason && before.Message == c.Message {
			if !equality.Semantic.DeepEqual(before, c) {
				j.breach("words", r.key, r.uid, "%s changed the times of condition %s, and nothing else of it", w.By, c.Type)
			}
			continue
		}
		if text := j.wrongWords(r, next, c); text != "" {
			j.breach("words", r.key, r.uid, "%s wrote the condition %s=%s (%s: %q), and %s", w.By, c.Type, c.Status, c.Reason, c.Message, text)
		}
		if !c.LastProbeTime.Equal(&c.LastTransitionTime) || !j.justNow(c.LastTransitionTime) {
			j.breach("words", r.key, r.uid, "%s wrote the condition %s at %s with the times %s and %s", w.By, c.Type, w.Time, c.LastTransitionTime, c.LastProbeTime)
		}
	}
	for i := range r.job.Status.Conditions {
		if i >= len(next.Status.Conditions) || next.Status.Conditions[i].Type != r.job.Status.Conditions[i].Type {
			j.breach("words", r.key, r.uid, "%s moved the condition %s to another place", w.By, r.job.Status.Conditions[i].Type)
			return
		}
	}
}

// wrongWords says what is wrong about the words of a condition; empty if nothing is.
func (j *judge) wrongWords(r *jobRecord, next *batchv1.Job, c *batchv1.JobCondition) string {
	if c.Type == classifiedCondition {
		return "" // judgeClassified reads it.
	}
	if want, ok := trueFor[c.Reason]; ok && c.Status != want || !ok && c.Status != corev1.ConditionTrue {
		return "that reason goes with another status"
	}
	interim := map[batchv1.JobConditionType]batchv1.JobConditionType{batchv1.JobComplete: batchv1.JobSuccessCriteriaMet, batchv1.JobFailed: batchv1.JobFailureTarget}[c.Type]
	if said := condition(r.job, interim); said != nil {
		if said.Reason != c.Reason || said.Message != c.Message {
			return sprint("%s said: %s: %q", interim, said.Reason, said.Message)
		}
		return "" // It was judged then.
	}
	for _, s := range sayings[c.Type] {
		if s.reason != c.Reason {
			continue
		}
		groups := pattern(`^(?:` + s.message + `)$`).FindStringSubmatch(c.Message)
		if groups == nil {
			continue
		}
		if s.wrong == nil {
			return ""
		}
		return s.wrong(j, r, next, groups[1:])
	}
	return "no condition of that type says so"
}

// justNow reports whether a time in a status is that of the decision: whole seconds, and by the clock of the
// executor. A decision may wait for its write.
func (j *judge) justNow(at metav1.Time) bool {
	return at.Nanosecond() == 0 && !at.After(j.now.Add(j.fastest)) && !at.Time.Before(j.now.Add(j.slowest-j.lag))
}

// wrongSuccessRule: the first rule of the success policy that is met is named.
func (j *judge) wrongSuccessRule(_ *jobRecord, next *batchv1.Job, groups []string) string {
	if next.Spec.SuccessPolicy == nil {
		return "there is no such policy"
	}
	for i, rule := range next.Spec.SuccessPolicy.Rules {
		if ruleMet(next, rule) {
			if strconv.Itoa(i) != groups[0] {
				return sprint("the completed indexes %q meet rule %d first", next.Status.CompletedIndexes, i)
			}
			return ""
		}
	}
	return "no rule is met"
}

// wrongExit: the pod is one of the Job's, and a container of it ended so.
func (j *judge) wrongExit(r *jobRecord, next *batchv1.Job, groups []string) string {
	container, code := groups[0], groups[3]
	return j.wrongMatch(r, next, groups[1], groups[2], groups[4], func(pod *corev1.Pod, rule *batchv1.PodFailurePolicyRule) bool {
		ended := func(s corev1.ContainerStatus) bool {
			return s.Name == container && s.State.Terminated != nil && strconv.Itoa(int(s.State.Terminated.ExitCode)) == code
		}
		named := rule.OnExitCodes == nil || valueOr(rule.OnExitCodes.ContainerName, container) == container
		return named && matchesExit(rule.OnExitCodes, pod) && (slices.ContainsFunc(pod.Status.ContainerStatuses, ended) || slices.ContainsFunc(pod.Status.InitContainerStatuses, ended))
	})
}

// wrongPodCondition: the pod is one of the Job's, and has that condition.
func (j *judge) wrongPodCondition(r *jobRecord, next *batchv1.Job, groups []string) string {
	return j.wrongMatch(r, next, groups[0], groups[1], groups[3], func(pod *corev1.Pod, rule *batchv1.PodFailurePolicyRule) bool {
		patterns := slices.DeleteFunc(slices.Clone(rule.OnPodConditions), func(p batchv1.PodFailurePolicyOnPodConditionsPattern) bool { return string(p.Type) != groups[2] })
		return matchesCondition(patterns, pod)
	})
}

// wrongMatch compares what a message says of a pod and of a rule of the pod failure policy with a version of the pod.
func (j *judge) wrongMatch(r *jobRecord, next *batchv1.Job, namespace, name, index string, matches func(*corev1.Pod, *batchv1.PodFailurePolicyRule) bool) string {
	p := j.podNamed(r, name)
	if p == nil || namespace != r.key.Namespace {
		return "the Job has had no such pod"
	}
	i, _ := strconv.Atoi(index)
	if next.Spec.PodFailurePolicy == nil || i >= len(next.Spec.PodFailurePolicy.Rules) {
		return "there is no such rule"
	}
	rule := &next.Spec.PodFailurePolicy.Rules[i]
	if rule.Action != batchv1.PodFailurePolicyActionFailJob {
		return "that rule does not fail the Job"
	}
	for _, pod := range []*corev1.Pod{p.first, p.pod, p.running} {
		if pod != nil && matches(pod, rule) {
			return ""
		}
	}
	return "the pod's own status does not"
}

// wrongUnstarted: the pod is one of the Job's, and the Job gives pods so much time to start.
func (j *judge) wrongUnstarted(r *jobRecord, _ *batchv1.Job, groups []string) string {
	if groups[0] != r.key.Namespace || j.podNamed(r, groups[1]) == nil {
		return "the Job has had no such pod"
	}
	for _, option := range optionsOf(r.job).NeverStarted {
		if strconv.FormatInt(int64(option.AfterSeconds), 10) == groups[2] {
			return ""
		}
	}
	return sprint("the Job does not give pods %s s to start", groups[2])
}

// judgeTimes: the start time is when the Job last began to run, or resumed, and is gone while it is suspended
// (documentation of JobStatus.startTime). The completion time comes with the condition Complete.
func (j *judge) judgeTimes(w apiserver.Write, r *jobRecord, next *batchv1.Job) {
	was, is := r.job.Status.StartTime, next.Status.StartTime
	said := condition(next, batchv1.JobSuspended)
	turned := said != nil && (condition(r.job, batchv1.JobSuspended) == nil || condition(r.job, batchv1.JobSuspended).Status != said.Status)
	var wrong string
	switch {
	case turned && said.Status == corev1.ConditionTrue:
		if keeps := j.keepsStart && was.Equal(is); is != nil && !keeps {
			wrong = "the Job is suspended now"
		}
	case turned || was == nil && is != nil:
		if is == nil || !j.justNow(*is) {
			wrong = "it begins now"
		}
	case !was.Equal(is):
		wrong = "nothing has changed it"
	}
	if wrong == "" && was == nil && is != nil && suspended(r.job) && finished(next) == "" {
		wrong = "the Job is suspended"
	}
	if wrong != "" {
		j.breach("words", r.key, r.uid, "%s changed the start time from %v to %v, and %s", w.By, was, is, wrong)
	}
	done := next.Status.CompletionTime
	switch {
	case (done != nil) != ledger.IsTrue(next, batchv1.JobComplete):
		j.breach("words", r.key, r.uid, "%s wrote the completion time %v of a Job that is %q", w.By, done, finished(next))
	case done != nil && !done.Equal(is) && !j.justNow(*done):
		j.breach("words", r.key, r.uid, "%s wrote the completion time %v at %s", w.By, done, w.Time)
	}
}

// jobEvents are the events of Jobs: their types and messages by reason. What a Job failed for is also one.
var jobEvents = map[string]struct{ kind, message string }{
	"Completed":            {corev1.EventTypeNormal, `Job completed`},
	"Suspended":            {corev1.EventTypeNormal, `Job suspended`},
	"Resumed":              {corev1.EventTypeNormal, `Job resumed`},
	"SuccessfulCreate":     {corev1.EventTypeNormal, `Created pod: .+`},
	"SuccessfulDelete":     {corev1.EventTypeNormal, `Deleted pod: .+`},
	"TooManySucceededPods": {corev1.EventTypeWarning, `Too many succeeded pods running after completion count reached`},
}

// combined stands before the message of an event that client-go sends in place of many similar ones.
const combined = "(combined from similar events): "

// judgeEvent: an event of an executor about a Job says what such events say.
func (j *judge) judgeEvent(w apiserver.Write, ours bool) {
	event, ok := w.New.(*corev1.Event)
	if !ours || !ok || j.terse {
		return
	}
	j.judgeReference(w, event)
	if r := j.jobs[event.InvolvedObject.UID]; r != nil {
		if text := j.wrongEvent(r, event); text != "" {
			j.breach("words", r.key, r.uid, "an event of %s says %s, %s: %q, and %s", w.By, event.Type, event.Reason, event.Message, text)
		}
	}
}

// wrongEvent says what is wrong about an event of a Job; empty if nothing is.
func (j *judge) wrongEvent(r *jobRecord, event *corev1.Event) string {
	known, ok := jobEvents[event.Reason]
	message := strings.TrimPrefix(event.Message, combined)
	if !ok {
		i := slices.IndexFunc(failures, func(s saying) bool { return s.reason == event.Reason })
		if i < 0 {
			return ""
		}
		if c := condition(r.job, batchv1.JobFailed); c == nil || message != c.Message || event.Type != corev1.EventTypeWarning {
			return "the condition Failed does not say so"
		}
		return ""
	}
	if event.Type != known.kind || !pattern(`^(?:`+known.message+`)$`).MatchString(message) {
		return "such an event says something else"
	}
	if _, pod, named := strings.Cut(message, " pod: "); named && j.podNamed(r, pod) == nil && len(j.alterations[r.uid]) == 0 {
		return "the Job has had no such pod"
	}
	return ""
}

// pattern is a compiled regular expression. Judges ask for the same few again and again.
func pattern(text string) *regexp.Regexp {
	if known, ok := patterns.Load(text); ok {
		return known.(*regexp.Regexp)
	}
	compiled := regexp.MustCompile(text)
	patterns.Store(text, compiled)
	return compiled
}

var patterns sync.Map
