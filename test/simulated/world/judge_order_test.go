package world

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// runsOn lets a pod run on a node, and be ready from now on if that is asked for.
func (tp *tape) runsOn(pod string, ready bool) {
	tp.edit(kubelet, types.UID(pod), func(p *corev1.Pod) {
		p.Spec.NodeName, p.Status.Phase = "n", corev1.PodRunning
		if ready {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(tp.now)}}
		}
	})
}

// Of pods too many, those go first whose end loses the least work.
func TestOrderOfDeletions(t *testing.T) {
	two := func(tp *tape) {
		tp.job("a")
		create(tp, "a-0", noIndex)
		create(tp, "a-1", noIndex)
		tp.runsOn("a-0", true)
	}
	deletesOne := func(tp *tape, pod string) {
		tp.wait(10 * time.Minute)
		tp.spec(parallel(1))
		tp.release(executorA, types.UID(pod))
		tp.deletes(executorA, types.UID(pod))
		tp.wait(10 * time.Minute)
		tp.judge.look(tp.now)
	}
	broken := []string{"deletion"}
	runStreams(t, map[string]streamCase{
		"the one without a node": {play: func(tp *tape) { two(tp); deletesOne(tp, "a-1") }},
		"not the one without a node": {want: broken, play: func(tp *tape) {
			two(tp)
			deletesOne(tp, "a-0")
		}},
		"not the one that is not ready": {want: broken, play: func(tp *tape) {
			two(tp)
			tp.runsOn("a-1", false)
			deletesOne(tp, "a-0")
		}},
		"not the one that is ready for a shorter time": {want: broken, play: func(tp *tape) {
			two(tp)
			tp.wait(time.Minute)
			tp.runsOn("a-1", true)
			deletesOne(tp, "a-0")
		}},
		"either of two that are equal": {play: func(tp *tape) {
			two(tp)
			tp.runsOn("a-1", true)
			deletesOne(tp, "a-0")
		}},
		"the one that was ready a moment ago, as far as an executor may know": {play: func(tp *tape) {
			two(tp)
			tp.wait(10 * time.Minute)
			tp.runsOn("a-1", true)
			tp.spec(parallel(1))
			tp.release(executorA, "a-1")
			tp.deletes(executorA, "a-1")
		}},
		"both": {play: func(tp *tape) {
			two(tp)
			tp.wait(10 * time.Minute)
			tp.spec(parallel(0))
			tp.release(executorA, "a-0")
			tp.deletes(executorA, "a-0")
			tp.release(executorA, "a-1")
			tp.deletes(executorA, "a-1")
			tp.wait(10 * time.Minute)
			tp.judge.look(tp.now)
		}},
	})
}

// A condition says what such conditions say, and repeats its interim one.
func TestWordsOfConditions(t *testing.T) {
	j := newTape(t).judge
	job := &batchv1.Job{}
	said := &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{
		{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonFailedIndexes, Message: "Job has failed indexes"},
	}}}
	cases := map[string]struct {
		before  *batchv1.Job
		kind    batchv1.JobConditionType
		status  corev1.ConditionStatus
		reason  string
		message string
		wrong   bool
	}{
		"as upstream says it":             {kind: batchv1.JobFailureTarget, reason: batchv1.JobReasonFailedIndexes, message: "Job has failed indexes"},
		"another message":                 {kind: batchv1.JobFailureTarget, reason: batchv1.JobReasonFailedIndexes, message: "Job has failed index", wrong: true},
		"the reason of a success":         {kind: batchv1.JobFailureTarget, reason: batchv1.JobReasonCompletionsReached, message: "Reached expected number of succeeded pods", wrong: true},
		"suspended":                       {kind: batchv1.JobSuspended, reason: "JobSuspended", message: "Job suspended"},
		"suspended, and false":            {kind: batchv1.JobSuspended, status: corev1.ConditionFalse, reason: "JobSuspended", message: "Job suspended", wrong: true},
		"resumed":                         {kind: batchv1.JobSuspended, status: corev1.ConditionFalse, reason: "JobResumed", message: "Job resumed"},
		"the terminal one repeats it":     {before: said, kind: batchv1.JobFailed, reason: batchv1.JobReasonFailedIndexes, message: "Job has failed indexes"},
		"the terminal one says otherwise": {before: said, kind: batchv1.JobFailed, reason: batchv1.JobReasonDeadlineExceeded, message: "Job was active longer than specified deadline", wrong: true},
		"a rule of no policy":             {kind: batchv1.JobSuccessCriteriaMet, reason: batchv1.JobReasonSuccessPolicy, message: "Matched rules at index 0", wrong: true},
		"a pod of another Job": {
			kind: batchv1.JobFailureTarget, reason: batchv1.JobReasonPodFailurePolicy, wrong: true,
			message: "Container c for pod ns/x failed with exit code 1 matching FailJob rule at index 0",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &jobRecord{job: job}
			if tc.before != nil {
				r.job = tc.before
			}
			if tc.status == "" {
				tc.status = corev1.ConditionTrue
			}
			c := &batchv1.JobCondition{Type: tc.kind, Status: tc.status, Reason: tc.reason, Message: tc.message}
			if text := j.wrongWords(r, job, c); (text != "") != tc.wrong {
				t.Errorf("found %q", text)
			}
		})
	}
}
