package explain_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/cronjob"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/executor/writes"
	"jobpolicy.dev/services/explain"
)

// denied are events of a refusal that began so long ago.
func denied(kind writes.Kind, ago time.Duration) []corev1.Event {
	reason, message := kind.Event("ValidatingAdmissionPolicy 'p' denied request: not here")
	return []corev1.Event{{Type: corev1.EventTypeWarning, Reason: reason, Message: message, FirstTimestamp: before(ago), LastTimestamp: before(ago)}}
}

// statusWritten is when the status was written last.
func statusWritten(ago time.Duration) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		at := before(ago)
		j.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "controller", Subresource: "status", Time: &at}}
	}
}

// recordedPod is in the Job's status as a pod that has succeeded and is yet to be released.
func recordedPod(j *batchv1.Job) {
	j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Succeeded: []types.UID{uid(101)}}
	j.Status.Ready, j.Status.Terminating = ptr.To[int32](0), ptr.To[int32](0)
}

// What the API server refuses is told as long as the write is yet to be made, and "now" is not said of it.
func TestWritesThatTheAPIServerRefuses(t *testing.T) {
	succeeded := condition(batchv1.JobSuccessCriteriaMet, "CompletionsReached", "Reached expected number of succeeded pods")
	complete := condition(batchv1.JobComplete, "CompletionsReached", "Reached expected number of succeeded pods")
	endedPod := pod(1, corev1.PodSucceeded, failedWith(0, 4*time.Minute))
	released := func(p *corev1.Pod) { p.Finalizers = nil }
	expired := func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = ptr.To[int32](1) }
	for name, tc := range map[string]struct {
		facts explain.Facts
		kind  writes.Kind
		ago   time.Duration
		// refused: the refusal is told.
		refused bool
		says    []string
	}{
		"the finalizer of a pod that has succeeded": {
			facts: explain.Facts{Job: job(succeeded, recordedPod), Pods: []corev1.Pod{endedPod}},
			kind:  writes.ReleasePod, ago: 3 * time.Minute, refused: true,
			says: []string{
				"headline: The Job has succeeded: Reached expected number of succeeded pods (CompletionsReached). It waits for the API server. The API server refuses to remove the finalizer of 1 pod, since 2026-05-04T11:57:00Z (3m ago): ValidatingAdmissionPolicy 'p' denied request: not here.",
				"wait: the API server, which refuses to remove the finalizer of 1 pod: ValidatingAdmissionPolicy", "change: Let the policy that the message names",
			},
		},
		"a finalizer, and the pod has ended since": {
			facts: explain.Facts{Job: job(succeeded, recordedPod), Pods: []corev1.Pod{pod(1, corev1.PodSucceeded, failedWith(0, time.Second))}},
			kind:  writes.ReleasePod, ago: 5 * time.Minute,
			says: []string{"It is Complete when the Job controller has removed the finalizer of its pods: 1 left."},
		},
		"a finalizer, and the pod has ended since, but long ago": {
			facts: explain.Facts{Job: job(succeeded, recordedPod), Pods: []corev1.Pod{endedPod}},
			kind:  writes.ReleasePod, ago: 5 * time.Minute, refused: true,
		},
		"a finalizer that is gone": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodSucceeded, released)}},
			kind:  writes.ReleasePod, ago: 3 * time.Minute,
		},
		"the finalizer of a pod that is to be deleted": {
			facts: explain.Facts{Job: job(func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }), Pods: []corev1.Pod{pod(1, corev1.PodRunning)}},
			kind:  writes.ReleasePod, ago: 3 * time.Minute, refused: true, says: []string{"remove the finalizer of 1 pod"},
		},
		"the deletion of a pod": {
			facts: explain.Facts{Job: job(func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }), Pods: []corev1.Pod{pod(1, corev1.PodRunning)}},
			kind:  writes.DeletePod, ago: 3 * time.Minute, refused: true, says: []string{"The API server refuses to delete 1 pod, since"},
		},
		"the deletion of a pod, long ago": {
			facts: explain.Facts{Job: job(func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }), Pods: []corev1.Pod{pod(1, corev1.PodRunning)}},
			kind:  writes.DeletePod, ago: time.Hour,
		},
		"the status": {
			facts: explain.Facts{Job: job(statusWritten(5 * time.Minute)), Pods: []corev1.Pod{pod(1, corev1.PodRunning)}},
			kind:  writes.UpdateStatus, ago: 3 * time.Minute, refused: true, says: []string{"The API server refuses to write the Job's status, since"},
		},
		"the status, and it was written since": {
			facts: explain.Facts{Job: job(statusWritten(time.Minute)), Pods: []corev1.Pod{pod(1, corev1.PodRunning)}},
			kind:  writes.UpdateStatus, ago: 3 * time.Minute,
		},
		"an adoption": {
			facts: explain.Facts{Job: job(statusWritten(5 * time.Minute))},
			kind:  writes.AdoptPod, ago: 3 * time.Minute, refused: true, says: []string{"The API server refuses to let the Job adopt 1 pod"},
		},
		"an adoption, and the status was written since": {
			facts: explain.Facts{Job: job(statusWritten(time.Minute))},
			kind:  writes.AdoptPod, ago: 3 * time.Minute,
		},
		"the deletion of the Job when its time to live is over": {
			facts: explain.Facts{Job: job(complete, expired)},
			kind:  writes.DeleteJob, ago: time.Minute, refused: true, says: []string{"The API server refuses to delete the Job, since 2026-05-04T11:59:00Z (1m ago)"},
		},
	} {
		tc.facts.Now, tc.facts.Events = now, denied(tc.kind, tc.ago)
		t.Run(name, func(t *testing.T) { explainRefusal(t, tc.facts, tc.refused, tc.says) })
	}
}

func explainRefusal(t *testing.T, facts explain.Facts, refused bool, says []string) {
	r, err := explain.Explain(facts, engine.DecideJob)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(r.Refused) > 0; got != refused {
		t.Errorf("refused: %v, want %v", r.Refused, refused)
	}
	if r.Next != nil && r.Next.At == nil && r.Next.Refused != refused {
		t.Errorf("next %+v, want it to be refused: %v", *r.Next, refused)
	}
	text := flat(r)
	for _, part := range says {
		if !strings.Contains(text, part) {
			t.Errorf("it does not say %q", part)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// The same for a CronJob.
func TestWritesForACronJobThatTheAPIServerRefuses(t *testing.T) {
	cron := func(change ...func(*batchv1.CronJob)) *batchv1.CronJob {
		c := &batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cron", UID: uid(1), CreationTimestamp: before(10 * time.Hour)},
			Spec:       batchv1.CronJobSpec{Schedule: "0 6 1 1 *"},
		}
		for _, f := range change {
			f(c)
		}
		return c
	}
	byHand := func(c *batchv1.CronJob) { c.Annotations = map[string]string{"jobpolicy.dev/run-now": "x"} }
	staleStatus := func(c *batchv1.CronJob) {
		c.Status.Active = []corev1.ObjectReference{{APIVersion: "batch/v1", Kind: "Job", Namespace: "ns", Name: "gone", UID: uid(7)}}
	}
	oneFailure := func(c *batchv1.CronJob) {
		c.Annotations = map[string]string{wire.Policy: "{cronJob: {suspendAfterFailures: 1}}"}
	}
	failedRun := job(condition(batchv1.JobFailed, "BackoffLimitExceeded", ""), func(j *batchv1.Job) {
		j.Annotations = map[string]string{batchv1.CronJobScheduledTimestampAnnotation: now.Add(-time.Hour).Format(time.RFC3339)}
		j.UID, j.OwnerReferences = uid(5), []metav1.OwnerReference{*metav1.NewControllerRef(cron(), batchv1.SchemeGroupVersion.WithKind("CronJob"))}
	})
	for name, tc := range map[string]struct {
		cron *batchv1.CronJob
		kind writes.Kind
		want string // Empty: the refusal is not told.
	}{
		"a run by hand":              {cron(byHand), writes.CreateRun, "A run that jobpolicy.dev/run-now asks for cannot start, because the API server refuses its Job"},
		"the status":                 {cron(staleStatus), writes.UpdateCronJobStatus, "The API server refuses to write the CronJob's status, since"},
		"a status that is right":     {cron(), writes.UpdateCronJobStatus, ""},
		"an edit":                    {cron(oneFailure), writes.UpdateCronJob, "The API server refuses to change the CronJob, since"},
		"an edit that is not needed": {cron(), writes.UpdateCronJob, ""},
		"a deletion that is not due": {cron(), writes.DeleteRun, ""},
	} {
		t.Run(name, func(t *testing.T) {
			facts := explain.CronFacts{CronJob: tc.cron, Events: denied(tc.kind, time.Minute), Now: now}
			if tc.kind == writes.UpdateCronJob {
				facts.Jobs = []batchv1.Job{*failedRun}
			}
			r, err := explain.ExplainCronJob(facts, cronjob.Decide)
			if err != nil {
				t.Fatal(err)
			}
			if told := len(r.Refused) > 0; told != (tc.want != "") || !strings.Contains(r.Headline, tc.want) {
				t.Errorf("refused %v: %s; want %q", r.Refused, r.Headline, tc.want)
			}
		})
	}
}

// When many refusals were told of, further ones are not, so pods may be refused although some were created since.
func TestRefusalsThatAreNotTold(t *testing.T) {
	five := job(managedByUs, func(j *batchv1.Job) { j.Spec.Parallelism, j.Spec.Completions = ptr.To[int32](5), ptr.To[int32](9) })
	many := func(count int32, ago time.Duration) []corev1.Event {
		return []corev1.Event{
			{Reason: "FailedCreate", Message: "Error creating: exceeded quota: q", Count: 15, LastTimestamp: before(20 * time.Minute)},
			{Reason: "FailedCreate", Message: "Error creating: exceeded quota: q, used", Count: count, LastTimestamp: before(ago)},
		}
	}
	createdBefore := func(ago time.Duration) []corev1.Pod {
		return []corev1.Pod{pod(1, corev1.PodRunning, func(p *corev1.Pod) { p.CreationTimestamp = before(ago) })}
	}
	const perhaps = "The API server may refuse them: the last event about a refusal is from 4m ago (exceeded quota: q, used). After 25 such events, a controller leaves most of them out."
	explainEach(t, map[string]reportCase{
		"a pod was created just now": {
			facts: explain.Facts{Job: five, Events: many(10, 4*time.Minute), Pods: createdBefore(4 * time.Second)},
			state: explain.Running, says: []string{"headline: The Job goes on: 4 pods are to be created. " + perhaps},
		},
		"a pod was created since": {
			facts: explain.Facts{Job: five, Events: many(10, 4*time.Minute), Pods: createdBefore(3 * time.Minute)},
			state: explain.Waiting, says: []string{"headline: The Job lacks 4 pods, and the controller jobpolicy.dev/executor has not created them. " + perhaps},
		},
		"so few that each is told": {
			facts: explain.Facts{Job: five, Events: many(9, 4*time.Minute), Pods: createdBefore(4 * time.Second)},
			state: explain.Running, silent: []string{"refuse"},
		},
		"so long ago that one would have been told": {
			facts: explain.Facts{Job: five, Events: many(10, 11*time.Minute), Pods: createdBefore(4 * time.Second)},
			state: explain.Running, silent: []string{"refuse"},
		},
	})
}
