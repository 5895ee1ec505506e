package tracker

import (
	"fmt"
	"testing"
	"time"

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
	var u Job
	u.Unanswered(lost)
	shown := next.Result()
	shown.ResourceVersion = "8"
	if w := u.Resolve(shown); w != nil {
		t.Errorf("settled as %v, and that write was lost", w.Status)
	}
	if !u.Announce(next) {
		t.Error("the end is not announced")
	}
}

// The API server answers every status write with an error for hours, while reads work. Little
// is kept, and the last tries are still announced if they took effect.
func TestWritesWithoutAnswerAreBounded(t *testing.T) {
	began := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	decided := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}}
	ends := func(n int) *StatusWrite {
		return &StatusWrite{Job: decided, Status: batchv1.JobStatus{Failed: 1, Conditions: []batchv1.JobCondition{{
			Type: batchv1.JobFailed, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(began.Add(time.Duration(n) * time.Minute)),
		}}}}
	}
	counts := func(int) *StatusWrite { return &StatusWrite{Job: decided, Status: batchv1.JobStatus{Failed: 1}} }
	cases := map[string]struct {
		write func(int) *StatusWrite
		kept  int
	}{
		"the same status again and again": {write: counts, kept: 1},
		"an end, each time a later one":   {write: ends, kept: maxUnanswered},
	}
	for name, tc := range cases {
		for _, back := range []int{0, tc.kept - 1} {
			t.Run(fmt.Sprint(name, ", then it took effect ", back, " tries ago"), func(t *testing.T) {
				var u Job
				const tries = 200
				for n := range tries {
					u.Unanswered(tc.write(n))
				}
				if len(u.unanswered.writes) != tc.kept {
					t.Errorf("%d writes are kept, want %d", len(u.unanswered.writes), tc.kept)
				}
				shown := tc.write(tries - 1 - back).Result()
				shown.ResourceVersion = "8"
				if u.Resolve(shown) == nil || len(u.unanswered.writes) != 0 {
					t.Errorf("not announced, or kept: %d", len(u.unanswered.writes))
				}
			})
		}
	}
}
