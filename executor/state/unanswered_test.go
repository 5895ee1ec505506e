package state

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A status that counts pods gets no answer and is lost. The next try also declares the Job's
// end, and the watch shows it before the answer comes. The end is announced.
func TestALostWriteDoesNotHideTheNextOne(t *testing.T) {
	decided := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}}
	lost := &StatusWrite{Job: decided, Status: batchv1.JobStatus{Failed: 1}}
	next := &StatusWrite{Job: decided, Status: batchv1.JobStatus{
		Failed: 1, Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "DeadlineExceeded"}},
	}}
	var u Unanswered
	u.Add(lost)
	shown := next.Written()
	shown.ResourceVersion = "8"
	if w := u.Settle(shown); w != nil {
		t.Errorf("settled as %v, and that write was lost", w.Status)
	}
	if !u.Announce(next) {
		t.Error("the end is not announced")
	}
}
