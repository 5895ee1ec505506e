package witness

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// life is what a test lets the witness see of a pod: its phases one after the
// other, then whether it holds the finalizer, and its deletion.
type life struct {
	name, index   string
	phases        []corev1.PodPhase
	held          bool
	stopped, gone bool
}

func (l life) show(w *Witness, job types.UID) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: l.name, UID: types.UID(l.name),
		OwnerReferences: []metav1.OwnerReference{{UID: job, Controller: new(true)}},
		Annotations:     map[string]string{batchv1.JobCompletionIndexAnnotation: l.index},
	}}
	if l.held {
		pod.Finalizers = []string{batchv1.JobTrackingFinalizer}
	}
	for _, phase := range l.phases {
		pod = pod.DeepCopy()
		pod.Status.Phase = phase
		w.see(pod, false)
	}
	if l.stopped {
		pod = pod.DeepCopy()
		pod.DeletionTimestamp = new(metav1.Now())
		w.see(pod, false)
	}
	if l.gone {
		w.see(cache.DeletedFinalStateUnknown{Obj: pod}, true)
	}
}

var (
	ran    = []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded}
	failed = []corev1.PodPhase{corev1.PodRunning, corev1.PodFailed}
	runs   = []corev1.PodPhase{corev1.PodRunning}
)

// A checkCase is the end of a Job of two completions and what became of its pods; want
// is part of the complaint, empty for none.
type checkCase struct {
	indexed, fails    bool
	succeeded, failed int32
	uncounted         []types.UID
	lives             []life
	want              string
	parallel          int32
}

// job is the Job at its end.
func (c checkCase) job() *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "n", UID: "j"}}
	job.Spec.Parallelism, job.Spec.Completions = new(max(c.parallel, 1)), new(int32(2))
	if c.indexed {
		job.Spec.CompletionMode = new(batchv1.IndexedCompletion)
	}
	end := batchv1.JobComplete
	if c.fails {
		end = batchv1.JobFailed
	}
	job.Status = batchv1.JobStatus{
		Succeeded: c.succeeded, Failed: c.failed,
		Conditions:              []batchv1.JobCondition{{Type: end, Status: corev1.ConditionTrue}},
		UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{Succeeded: c.uncounted},
	}
	return job
}

func runChecks(t *testing.T, cases map[string]checkCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, job := newWitness(), tc.job()
			for _, l := range tc.lives {
				l.show(w, job.UID)
			}
			// Another Job's pod does not count for this one.
			life{name: "other", phases: runs}.show(w, "other")
			got := fmt.Sprint(w.Check(job))
			if tc.want == "" && got != "<nil>" || !strings.Contains(got, tc.want) {
				t.Errorf("Check = %s, want %q", got, tc.want)
			}
		})
	}
}

func TestCheckAcceptsARightStatus(t *testing.T) {
	runChecks(t, map[string]checkCase{
		"all is well": {
			succeeded: 2, failed: 1,
			lives: []life{{name: "a", phases: ran}, {name: "b", phases: failed}, {name: "c", phases: ran, gone: true}},
		},
		"all is well with indexes": {
			indexed: true, succeeded: 2,
			lives: []life{{name: "a", index: "0", phases: ran}, {name: "b", index: "1", phases: ran}},
		},
		"a Job that failed": {
			fails: true, failed: 1, lives: []life{{name: "a", phases: failed}},
		},
	})
}

func TestCheckFindsAWrongCount(t *testing.T) {
	runChecks(t, map[string]checkCase{
		"a pod counted twice": {
			succeeded: 3, lives: []life{{name: "a", phases: ran}, {name: "b", phases: ran}},
			want: "status.succeeded: 3, want 2",
		},
		"a pod that was lost": {
			succeeded: 2, lives: []life{{name: "a", phases: ran}, {name: "b", phases: ran}, {name: "c", phases: failed}},
			want: "status.failed: 0, want 1",
		},
		"a pod too many": {
			succeeded: 3, lives: []life{{name: "a", phases: ran}, {name: "b", phases: ran}, {name: "c", phases: ran}},
			want: "pods that succeeded: 3, want 2",
		},
		"a pod too many that was stopped": {
			succeeded: 2, lives: []life{{name: "a", phases: ran}, {name: "b", phases: ran}, {name: "c", phases: runs, stopped: true, gone: true}},
			want: "pods that were stopped, so one too many: 1, want 0",
		},
		"an index that ran twice": {
			indexed: true, succeeded: 2,
			lives: []life{{name: "a", index: "0", phases: ran}, {name: "b", index: "0", phases: ran}, {name: "c", index: "1", phases: ran}},
			want:  "pods that succeeded with an index that already had: 1, want 0",
		},
		"a finalizer that stays": {
			succeeded: 2, lives: []life{{name: "a", phases: ran}, {name: "b", phases: ran, held: true}},
			want: "pods that run or hold the finalizer: 1, want 0",
		},
		"a pod that still runs": {
			succeeded: 2, lives: []life{{name: "a", phases: ran}, {name: "b", phases: ran}, {name: "c", phases: runs}},
			want: "pods that run or hold the finalizer: 1, want 0",
		},
		"an uncounted pod": {
			succeeded: 2, uncounted: []types.UID{"a"}, lives: []life{{name: "a", phases: ran}, {name: "b", phases: ran}},
			want: "pods in status.uncountedTerminatedPods: 1, want 0",
		},
		"more at once than may be": {
			parallel: 1, succeeded: 2,
			lives: []life{{name: "a", phases: runs}, {name: "b", phases: ran}, {name: "a", phases: ran}},
			want:  "pods that ran at once: 2, want at most 1",
		},
	})
}

func TestAPodThatLosesItsOwnerStaysTheJobs(t *testing.T) {
	w := newWitness()
	life{name: "a", phases: ran}.show(w, "j")
	w.see(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a"}}, true)
	if n := w.Pods("j"); n != 1 {
		t.Errorf("%d pods of the Job, want 1", n)
	}
}
