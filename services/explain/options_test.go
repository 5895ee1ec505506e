package explain_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/services/explain"
)

func managedByUs(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To(executor.ManagedBy) }

func managedBy(name string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Spec.ManagedBy = &name }
}

func asksFor(options string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Annotations = map[string]string{wire.Policy: options} }
}

func writtenBy(manager, subresource string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, Subresource: subresource}}
	}
}

// Only jobpolicy reads options, so they are told only of Jobs that it runs.
func TestOptionsOfAJobThatJobpolicyDoesNotRun(t *testing.T) {
	const (
		note = "note: annotations: Only jobpolicy reads the options under jobpolicy.dev/. The built-in controller does not know them."
		wait = "wait: the retry delay: failures in a row: 1; next try 16m40s after the last one"
		its  = "By default, the delay starts at 10 s"
	)
	slow := asksFor("{job: {retryDelay: {delaysSeconds: [1000]}}}")
	failed := []corev1.Pod{pod(1, corev1.PodFailed, failedWith(1, 2*time.Second))}
	applied := func(j *batchv1.Job) reportCase {
		return reportCase{facts: explain.Facts{Job: j, Pods: failed}, state: explain.BackingOff, says: []string{wait}, silent: []string{note, its}}
	}
	leftOut := func(j *batchv1.Job) reportCase {
		return reportCase{facts: explain.Facts{Job: j, Pods: failed}, state: explain.BackingOff, says: []string{note, its, "next try 10s after"}, silent: []string{wait}}
	}
	withEvent := applied(job(slow))
	withEvent.facts.Events = []corev1.Event{{Reason: "InvalidPolicy", LastTimestamp: before(time.Minute)}}
	unread := leftOut(job(asksFor("gone")))
	unread.silent = append(unread.silent, "does not start")
	explainEach(t, map[string]reportCase{
		"ours":                                  applied(job(slow, managedByUs)),
		"one under another name":                applied(job(slow, managedBy("example.com/jobs"), writtenBy("jobpolicy-executor", "status"))),
		"one in place of the built-in":          applied(job(slow, writtenBy("jobpolicy-executor", "status"))),
		"one that told of an invalid policy":    withEvent,
		"the built-in controller's":             leftOut(job(slow, writtenBy("kube-controller-manager", "status"))),
		"the built-in controller's, by name":    leftOut(job(slow, managedBy(batchv1.JobControllerName))),
		"another controller's":                  leftOut(job(slow, managedBy("example.com/jobs"))),
		"created by an executor, run by none":   leftOut(job(slow, writtenBy("jobpolicy-executor", ""))),
		"the built-in's, with a missing policy": unread,
		"without options": {
			facts: explain.Facts{Job: job(), Pods: failed}, state: explain.BackingOff, says: []string{its}, silent: []string{note},
		},
		"a delay after quotas": {
			facts: explain.Facts{Job: job(managedByUs, asksFor("{job: {retryDelay: {quotaMaxSeconds: 5}}}")), Pods: failed},
			state: explain.BackingOff, says: []string{its}, silent: []string{note},
		},
		"other options": {
			facts: explain.Facts{Job: job(managedByUs, asksFor("{job: {ttlSecondsAfterFailed: 5}}")), Pods: failed},
			state: explain.BackingOff, says: []string{its}, silent: []string{note},
		},
	})
}

// A started Job whose policy cannot be read goes on with the last valid one, and is told since when that is so.
func TestTheLastValidPolicyCounts(t *testing.T) {
	const (
		last = `{"job":{"retryDelay":{"delaysSeconds":[1000]}}}`
		wait = "wait: the retry delay: failures in a row: 1; next try 16m40s after the last one"
		note = "The last valid one counts, which the annotation jobpolicy.dev/last-valid-policy has"
		held = "The Job gets no more pods, because it has no last valid policy"
	)
	knows := func(text string) func(*batchv1.Job) {
		return func(j *batchv1.Job) { metav1.SetMetaDataAnnotation(&j.ObjectMeta, wire.LastValidPolicy, text) }
	}
	of := func(change ...func(*batchv1.Job)) explain.Facts {
		return explain.Facts{
			Job:    job(append([]func(*batchv1.Job){managedByUs, asksFor("gone")}, change...)...),
			Pods:   []corev1.Pod{pod(1, corev1.PodFailed, failedWith(1, 2*time.Second))},
			Events: []corev1.Event{{Reason: "InvalidPolicy", FirstTimestamp: before(3 * time.Minute), LastTimestamp: before(time.Minute)}},
		}
	}
	unread := of(knows(last))
	unread.Events = nil
	inItself := of(asksFor("{job: 3}"), knows(last))
	inItself.Events = nil
	unstarted := of(knows(last), func(j *batchv1.Job) { j.Status.StartTime = nil })
	unstarted.Pods = nil
	explainEach(t, map[string]reportCase{
		"since an event": {
			facts: of(knows(last)), state: explain.BackingOff,
			says: []string{wait, note, "The policy of the Job cannot be read since ", "(3m ago)", `names the JobPolicy "gone"`}, silent: []string{held},
		},
		"nobody says since when": {facts: inItself, state: explain.BackingOff, says: []string{wait, note, "cannot be read ("}, silent: []string{"cannot be read since"}},
		"perhaps the executor reads it": {
			facts: unread, state: explain.BackingOff,
			says:   []string{wait, "The JobPolicy gone could not be read here, so this follows the last valid one", "So does the executor if"},
			silent: []string{note, "correct the policy"},
		},
		"nobody knows it":   {facts: of(), state: explain.Invalid, says: []string{held}, silent: []string{note}},
		"it cannot be read": {facts: of(knows("{job: 3}")), state: explain.Invalid, says: []string{held}, silent: []string{note}},
		"not started":       {facts: unstarted, state: explain.Invalid, says: []string{"The Job does not start"}, silent: []string{note, held}},
		"a valid policy":    {facts: of(asksFor(last), knows(`{"job":{}}`)), state: explain.BackingOff, says: []string{wait}, silent: []string{note, held}},
	})
}
