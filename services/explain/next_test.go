package explain_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/cronjob"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/services/explain"
)

// A nextCase is a Job with its pods, and what comes next.
type nextCase struct {
	job  *batchv1.Job
	pods []corev1.Pod
	want string
}

// What comes next is what the engine decides when it wants to be asked again.
func TestNext(t *testing.T) {
	cases := nextCases()
	maps.Copy(cases, nextTries())
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			report, err := explain.Explain(explain.Facts{Job: tc.job, Pods: tc.pods, Now: now}, engine.DecideJob)
			if err != nil {
				t.Fatal(err)
			}
			if got := nextText(report.Next); got != tc.want {
				t.Errorf("next: %q, want %q", got, tc.want)
			}
		})
	}
}

func nextCases() map[string]nextCase {
	return map[string]nextCase{
		"a pod runs": {
			job: job(func(j *batchv1.Job) {
				j.Status.Active, j.Status.Ready, j.Status.Terminating = 1, ptr.To[int32](0), ptr.To[int32](0)
			}),
			pods: []corev1.Pod{pod(1, corev1.PodRunning)},
			want: "",
		},
		"a pod runs, and is not counted yet": {
			job: job(), pods: []corev1.Pod{pod(1, corev1.PodRunning)},
			want: "now status the status is brought up to date",
		},
		"a deadline": {
			job:  job(func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = ptr.To[int64](660) }),
			pods: []corev1.Pod{pod(1, corev1.PodRunning)},
			want: "12:01:00 condition the Job gets the condition FailureTarget (DeadlineExceeded)",
		},
		"no pod is there yet": {job: job(), want: "now create 1 pod is created"},
		"a time to live": {
			job: job(func(j *batchv1.Job) {
				j.Spec.TTLSecondsAfterFinished = ptr.To[int32](90)
				for _, c := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
					j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: before(time.Minute)})
				}
			}),
			want: "12:00:30 remove the Job is deleted with its pods, because its time to live is over",
		},
	}
}

// nextTries are Jobs whose pods have failed.
func nextTries() map[string]nextCase {
	failed := failedWith(1, 4*time.Second)
	return map[string]nextCase{
		"a retry delay": {
			job:  job(func(j *batchv1.Job) { j.Status.Failed = 1 }),
			pods: []corev1.Pod{pod(1, corev1.PodFailed, failed, released)},
			want: "12:00:06 create 1 pod is created",
		},
		"a failed pod is gone": {
			job:  job(func(j *batchv1.Job) { j.Status.Failed = 2 }),
			pods: []corev1.Pod{pod(1, corev1.PodFailed, failed, released)},
			want: "12:00:06 or later create 1 pod is created",
		},
		"a pod that counts as failed, because it is being deleted, was released": {
			job:  job(func(j *batchv1.Job) { j.Status.Failed = 2 }),
			pods: []corev1.Pod{pod(1, corev1.PodFailed, failed, released), pod(2, corev1.PodRunning, beingDeleted, released)},
			want: "12:00:06 or later create 1 pod is created",
		},
		"a failed pod is gone, and the delays become shorter": {
			job: job(func(j *batchv1.Job) {
				j.Status.Failed, j.Spec.ManagedBy = 2, new("jobpolicy.dev/executor")
				j.Annotations = map[string]string{wire.Policy: "{job: {retryDelay: {delaysSeconds: [10, 5]}}}"}
			}),
			pods: []corev1.Pod{pod(1, corev1.PodFailed, failed, released)},
			want: "12:00:06 or later or earlier create 1 pod is created",
		},
		"a failed pod that was released is being deleted": {
			job:  job(func(j *batchv1.Job) { j.Status.Failed = 2 }),
			pods: []corev1.Pod{pod(1, corev1.PodFailed, failed, released), pod(2, corev1.PodFailed, failed, beingDeleted, released)},
			want: "12:00:06 or later create 1 pod is created",
		},
		"a failed pod that the policy ignores hides none that is gone": {
			job:  job(func(j *batchv1.Job) { j.Status.Failed, j.Spec.PodFailurePolicy = 1, ignoring(1) }),
			pods: []corev1.Pod{pod(1, corev1.PodFailed, failed, released)},
			want: "12:00:06 or later create 1 pod is created",
		},
		"a failed pod that the policy ignores may be gone": {
			job:  job(func(j *batchv1.Job) { j.Spec.PodFailurePolicy = ignoring(1) }),
			pods: []corev1.Pod{pod(1, corev1.PodFailed, failed, released)},
			want: "12:00:06 or later create 1 pod is created",
		},
		"a failed pod has an index that the Job no longer has": {
			job: lowered(), pods: []corev1.Pod{pod(1, corev1.PodFailed, failed, released, ofIndex("0")), pod(2, corev1.PodFailed, failed, released, ofIndex("1"))},
			want: "12:00:06 or later create 1 pod is created",
		},
		"a pod that succeeded is gone": {
			job:  job(func(j *batchv1.Job) { j.Spec.Completions, j.Status.Succeeded, j.Status.Failed = ptr.To[int32](2), 1, 2 }),
			pods: []corev1.Pod{pod(1, corev1.PodFailed, failed, released), pod(2, corev1.PodFailed, failed, released)},
			want: "12:00:16 or earlier create 1 pod is created",
		},
	}
}

// endsPods is a Job that has failed, and whose active pods are ended, and stay.
func endsPods() *batchv1.Job {
	return job(func(j *batchv1.Job) {
		managedByUs(j)
		j.Annotations = map[string]string{wire.Policy: "{job: {whenJobFails: EndPods}}"}
		j.Status.Active, j.Status.Ready, j.Status.Terminating = 1, ptr.To[int32](0), ptr.To[int32](0)
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, LastTransitionTime: before(time.Second)}}
	})
}

// takenAt is a running pod that a node took at a time, and how long it may be active.
func takenAt(at time.Duration, seconds *int64) corev1.Pod {
	p := pod(1, corev1.PodRunning)
	start := metav1.NewTime(now.Add(at))
	p.Status.StartTime, p.Spec.ActiveDeadlineSeconds = &start, seconds
	return p
}

func TestNextOfAFailedJob(t *testing.T) {
	for want, p := range map[string]corev1.Pod{
		"now end 1 pod is ended, and stays": takenAt(-time.Minute, nil),
		"12:01:00 delete 1 pod is deleted":  takenAt(-time.Minute, new(int64(60))), // If its node does not end it.
	} {
		report, err := explain.Explain(explain.Facts{Job: endsPods(), Pods: []corev1.Pod{p}, Now: now}, engine.DecideJob)
		if err != nil {
			t.Fatal(err)
		}
		if got := nextText(report.Next); got != want {
			t.Errorf("next: %q, want %q", got, want)
		}
	}
}

// lowered is an Indexed Job with one index and two failed pods, whose completions were lowered.
func lowered() *batchv1.Job {
	return job(func(j *batchv1.Job) {
		j.Spec.CompletionMode, j.Spec.Completions, j.Status.Failed = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](1), 2
	})
}

func TestWhyATryMayComeLaterAfterCompletionsWereLowered(t *testing.T) {
	failed := failedWith(1, 4*time.Second)
	explainEach(t, map[string]reportCase{
		"lowered": {
			facts: explain.Facts{Job: lowered(), Pods: []corev1.Pod{pod(1, corev1.PodFailed, failed, released, ofIndex("0")), pod(2, corev1.PodFailed, failed, released, ofIndex("1"))}},
			state: explain.BackingOff, says: []string{"failures in a row: 1", "have an index that the Job no longer has: 1."},
		},
		"not lowered": {
			facts: explain.Facts{Job: lowered(), Pods: []corev1.Pod{pod(1, corev1.PodFailed, failed, released, ofIndex("0"))}},
			state: explain.BackingOff, says: []string{"Failed pods that are gone, or are being deleted: 1."},
		},
	})
}

func ofIndex(index string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: index} }
}

func released(p *corev1.Pod) { p.Finalizers = nil }

func beingDeleted(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(before(time.Second)) }

func ignoring(code int32) *batchv1.PodFailurePolicy {
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action:      batchv1.PodFailurePolicyActionIgnore,
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{code}},
	}}}
}

func nextText(n *explain.Next) string {
	if n == nil {
		return ""
	}
	at := "now"
	if n.At != nil {
		at = n.At.Format(time.TimeOnly)
	}
	if n.OrLater {
		at += " or later"
	}
	if n.OrEarlier {
		at += " or earlier"
	}
	var steps []string
	for _, s := range n.Steps {
		steps = append(steps, s.Kind+" "+s.Text)
	}
	return at + " " + strings.Join(steps, ", ")
}

// cronJob was created an hour ago.
func cronJob(schedule string, last metav1.Time) *batchv1.CronJob {
	return &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cron", UID: uid(1), CreationTimestamp: before(time.Hour)},
		Spec:       batchv1.CronJobSpec{Schedule: schedule, ConcurrencyPolicy: batchv1.AllowConcurrent},
		Status:     batchv1.CronJobStatus{LastScheduleTime: &last},
	}
}

// The times of an interval count from the last run, not from when somebody asks.
func TestTheNextRunOfAnIntervalCountsFromTheLastOne(t *testing.T) {
	cron := cronJob("@every 60s", before(55*time.Second))
	report, err := explain.ExplainCronJob(explain.CronFacts{CronJob: cron, Now: now}, cronjob.Decide)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []time.Duration{5 * time.Second, 65 * time.Second, 125 * time.Second} {
		if got := report.Next[i].At; !got.Equal(now.Add(want)) {
			t.Errorf("run %d: %s, want %s", i, got, now.Add(want))
		}
	}
}

// The API server takes times of the year 10000, and JSON does not.
func TestTimesThatJSONCannotHold(t *testing.T) {
	beyond := metav1.NewTime(time.Date(10000, time.January, 1, 0, 0, 0, 0, time.UTC))
	created := before(time.Hour)
	cron := cronJob("@hourly", beyond)
	owned := func(n int, conditions ...batchv1.JobCondition) *batchv1.Job {
		return &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: fmt.Sprint("run-", n), UID: uid(n), CreationTimestamp: created,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cron, batchv1.SchemeGroupVersion.WithKind("CronJob"))},
				Annotations:     map[string]string{batchv1.CronJobScheduledTimestampAnnotation: "9999-12-31T23:59:59-23:00"},
			},
			Status: batchv1.JobStatus{StartTime: &beyond, Conditions: conditions},
		}
	}
	ended := owned(3, batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: beyond})
	report, err := explain.ExplainCronJob(explain.CronFacts{CronJob: cron, Jobs: []batchv1.Job{*owned(2), *ended}, Now: now}, cronjob.Decide)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Active) != 1 || len(report.Ended) != 1 {
		t.Errorf("%d runs are active and %d have ended, want one each", len(report.Active), len(report.Ended))
	}
	if _, err := json.Marshal(report); err != nil {
		t.Error(err)
	}
	late := time.Date(9999, time.December, 31, 22, 30, 0, 0, time.UTC)
	cron.Spec.Suspend, cron.Spec.TimeZone, cron.Status.LastScheduleTime = new(true), new("Europe/Berlin"), &metav1.Time{Time: late}
	if report, err = explain.ExplainCronJob(explain.CronFacts{CronJob: cron, Now: now}, cronjob.Decide); err != nil {
		t.Fatal(err)
	}
	if len(report.Next) == 0 || report.Next[0].At.After(now.Add(time.Hour)) {
		t.Errorf("the next runs of a suspended CronJob with a last run in the future: %v", report.Next)
	}
	odd := owned(4)
	odd.Annotations[batchv1.CronJobScheduledTimestampAnnotation] = "2026-01-01T00:00:00+24:00"
	cron.Spec.Suspend = nil
	if report, err = explain.ExplainCronJob(explain.CronFacts{CronJob: cron, Jobs: []batchv1.Job{*odd}, Now: now}, cronjob.Decide); err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(report); err != nil {
		t.Error(err)
	}
	failed := pod(1, corev1.PodFailed, func(p *corev1.Pod) {
		failedWith(1, time.Second)(p)
		p.Status.ContainerStatuses[0].State.Terminated.FinishedAt = beyond
	})
	for _, job := range []*batchv1.Job{owned(2), ended} {
		job.Spec.TTLSecondsAfterFinished = new(int32(60))
		report, err := explain.Explain(explain.Facts{Job: job, Pods: []corev1.Pod{failed}, Now: now}, engine.DecideJob)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(report); err != nil {
			t.Error(err)
		}
	}
}
