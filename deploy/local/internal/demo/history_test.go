package demo

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/google/go-cmp/cmp"
)

func podOf(job, uid string, phase corev1.PodPhase) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}, Status: corev1.PodStatus{Phase: phase}}
	if job != "" {
		controller := true
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: job, Controller: &controller}}
	}
	return pod
}

func deleted(pod *corev1.Pod) *corev1.Pod {
	pod.DeletionTimestamp = &metav1.Time{}
	return pod
}

// A pod counts as alive until it has ended, whether it is being deleted or not.
func TestPodsAliveAtOnceAreCounted(t *testing.T) {
	t.Parallel()
	o := newObserver("", nil)
	o.sawPod(podOf("job", "a", corev1.PodRunning), true)
	o.sawPod(podOf("job", "b", corev1.PodPending), true)
	o.sawPod(podOf("other", "x", corev1.PodRunning), true)
	o.sawPod(deleted(podOf("job", "a", corev1.PodRunning)), true)
	o.sawPod(podOf("job", "c", corev1.PodPending), true) // while a is being deleted
	o.sawPod(deleted(podOf("job", "a", corev1.PodFailed)), true)
	o.sawPod(podOf("job", "b", corev1.PodSucceeded), true)
	o.sawPod(deleted(podOf("job", "b", corev1.PodSucceeded)), true)
	o.sawPod(deleted(podOf("job", "c", corev1.PodRunning)), false)
	for _, uid := range []string{"d", "e", "f"} { // while a and b are still there, and c is not
		o.sawPod(podOf("job", uid, corev1.PodPending), true)
	}
	past := o.past("job")
	if past.highest.alive != 3 || len(past.pods) != 6 {
		t.Errorf("%d pods alive at once of %d, want 3 of 6", past.highest.alive, len(past.pods))
	}
	stopped := 0
	for _, pod := range past.pods {
		if pod.stopped {
			stopped++
		}
	}
	if stopped != 2 {
		t.Errorf("%d pods were stopped, want the two that were deleted while they ran", stopped)
	}
}

func TestPodsBelongToTheJobThatTookThemOver(t *testing.T) {
	t.Parallel()
	o := newObserver("", nil)
	o.sawPod(podOf("old", "a", corev1.PodRunning), true)
	o.sawPod(podOf("", "a", corev1.PodRunning), true)
	if n := len(o.past("old").pods); n != 1 {
		t.Errorf("an orphan has left its Job: %d pods", n)
	}
	o.sawPod(podOf("new", "a", corev1.PodRunning), true)
	if before, after := len(o.past("old").pods), len(o.past("new").pods); before != 0 || after != 1 {
		t.Errorf("old has %d pods and new has %d, want 0 and 1", before, after)
	}
}

func TestVerdictHasToBeAnnounced(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		conditions [][]batchv1.JobConditionType // as seen one after the other
		good       bool
	}{
		"announced, then final": {[][]batchv1.JobConditionType{{}, {batchv1.JobFailureTarget}, {batchv1.JobFailureTarget, batchv1.JobFailed}}, true},
		"both at once":          {[][]batchv1.JobConditionType{{}, {batchv1.JobFailureTarget, batchv1.JobFailed}}, false},
		"never announced":       {[][]batchv1.JobConditionType{{}, {batchv1.JobComplete}}, false},
		"not ended yet":         {[][]batchv1.JobConditionType{{}}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newObserver("", nil)
			for _, kinds := range tc.conditions {
				job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job"}}
				for _, kind := range kinds {
					job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue})
				}
				o.sawJob(job, true)
			}
			if err := checkAnnounced(o.past("job")); (err == nil) != tc.good {
				t.Errorf("the check says %v", err)
			}
		})
	}
}

func TestReasonNamesTheRuleAndItsNumbers(t *testing.T) {
	t.Parallel()
	o := newObserver("", nil)
	v := verdict{DecidingRule: "RULE_BACKOFF_LIMIT_EXCEEDED"}
	v.Rules = []ruleAnswer{{"RULE_POD_FAILURE_POLICY_MATCHED", "the Job has no pod failure policy"}, {"RULE_BACKOFF_LIMIT_EXCEEDED", "failed pods 4, backoffLimit 3"}}
	o.said["job"] = saying{verdict: v}
	if diff := cmp.Diff("backoffLimitExceeded: failed pods 4, backoffLimit 3", o.why("job")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if why := o.why("another"); why != "" {
		t.Errorf("a Job of which nothing was said ended because of %q", why)
	}
}

// Of the metrics that are watched, the highest values stay.
func TestHighestValuesOfMetricsAreRemembered(t *testing.T) {
	t.Parallel()
	o := newObserver("", nil)
	for _, text := range []string{
		"# HELP jobpolicy_job_without_progress_seconds how long\n" + stuckSeries + " 1.5\n" + hinderedSeries + " 3\njobpolicy_managed_jobs 7\n",
		stuckSeries + " 2.5e+01\n" + hinderedSeries + " 0\n" + `jobpolicy_hindered_pods{reason="other"} 9` + "\nno number\n",
	} {
		o.sawMetrics(text)
	}
	want := map[string]float64{hinderedSeries: 3, stuckSeries: 25}
	if diff := cmp.Diff(want, o.past("any").metrics); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
