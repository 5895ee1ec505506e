package tracker

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/podcache"
)

func ownedBy(job string) option {
	return func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job, UID: types.UID(job), Controller: new(true)}}
	}
}

func ofNobody(pod *corev1.Pod) { pod.OwnerReferences = nil }

// What the informer's store holds of a pod.
func notStored(*podcache.Pod) *podcache.Pod    { return nil }
func isStored(pod *podcache.Pod) *podcache.Pod { return pod }
func storedAs(pod *podcache.Pod) func(*podcache.Pod) *podcache.Pod {
	return func(*podcache.Pod) *podcache.Pod { return pod }
}

func stray(pod *corev1.Pod) { pod.Labels = map[string]string{"stray": "yes"} }

// selecting is a policy whose selector does not match strays.
var selecting = Policy{Matches: func(pod *podcache.Pod) bool { return !pod.Labels.Has("stray") }}

// An absenceCase is what follows a list that lacks a pod, and what is known of the pod then.
type absenceCase struct {
	then          func(*Job)
	wantActive    int32
	wantRows      int
	wantStrays    int
	wantConfirmed bool
	wantKnown     bool
}

func loseEach(t *testing.T, cases map[string]absenceCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tr := New(Key{}, nil)
			tr.SetPolicy(selecting)
			tr.ObservePod(podOf(1, 10, tracked), Watch)
			tr.BeginList().End(nil, "50")
			tc.then(tr)
			// The UID is recorded unless the pod is back.
			q := ViewOptions{}
			if tc.wantActive+int32(tc.wantRows) == 0 {
				q.Uncounted = &batchv1.UncountedTerminatedPods{Succeeded: []types.UID{uidOf(1)}}
			}
			v := mustView(t, tr, q)
			if v.Pods.Active != tc.wantActive || len(v.Unaccounted) != tc.wantRows || len(tr.Strays()) != tc.wantStrays {
				t.Errorf("active %d, rows %d, strays %d; want %d, %d, %d",
					v.Pods.Active, len(v.Unaccounted), len(tr.Strays()), tc.wantActive, tc.wantRows, tc.wantStrays)
			}
			if confirmed := len(v.Confirmed) == 1; confirmed != tc.wantConfirmed {
				t.Errorf("the release is confirmed: %v, want %v", confirmed, tc.wantConfirmed)
			}
			if _, known := tr.Pod(uidOf(1)); known != tc.wantKnown {
				t.Errorf("the pod is known: %v, want %v", known, tc.wantKnown)
			}
		})
	}
}

// A list by selector leaves out a pod whose labels or owner changed before, although the
// pod exists and may have the finalizer.
func TestAPodMissingInAListIsGoneOnlyWhenTheWatchSaysSo(t *testing.T) {
	loseEach(t, map[string]absenceCase{
		"nothing else is known yet": {
			then: func(*Job) {}, wantKnown: true,
		},
		"it was deleted": {
			then: func(tr *Job) { tr.PodGone(uidOf(1), Watch) }, wantConfirmed: true,
		},
		"the watch shows what it was before": {
			then: func(tr *Job) { tr.ObservePod(podOf(1, 20, tracked, inPhase(corev1.PodSucceeded)), Watch) }, wantKnown: true,
		},
		"the watch has passed the list and does not hold it": {
			then: func(tr *Job) { tr.SweepPods(50, notStored) }, wantConfirmed: true,
		},
		"the watch has not reached the list": {
			then: func(tr *Job) { tr.SweepPods(49, notStored) }, wantKnown: true,
		},
		"the watch has passed the list and holds it": {
			then: func(tr *Job) { tr.SweepPods(50, isStored) }, wantKnown: true,
		},
		"the watch has passed the list and holds it as another's": {
			then: func(tr *Job) { tr.SweepPods(50, storedAs(podOf(1, 45, tracked, ownedBy("another")))) }, wantConfirmed: true,
		},
		"the watch has passed the list and holds it as one of nobody that the Job does not select": {
			then: func(tr *Job) { tr.SweepPods(50, storedAs(podOf(1, 45, tracked, ofNobody, stray))) }, wantConfirmed: true,
		},
		"the watch has passed the list and holds it as one of nobody that the Job may adopt": {
			then: func(tr *Job) {
				if tr.SweepPods(50, storedAs(podOf(1, 45, tracked, ofNobody))); !tr.Has(StaleClaims) {
					panic("the Job does not know that it may adopt the pod")
				}
			},
			wantConfirmed: true,
		},
		"it was another's by then, and is back since": {
			then: func(tr *Job) {
				tr.SweepPods(50, storedAs(podOf(1, 45, tracked, ownedBy("another"))))
				tr.ObservePod(podOf(1, 40, tracked), Watch)
				if _, known := tr.Pod(uidOf(1)); known {
					panic("a version from before it was another's brings it back")
				}
				tr.ObservePod(podOf(1, 60, tracked), Watch)
			},
			wantActive: 1, wantKnown: true,
		},
	})
}

func TestAPodMissingInAListMayComeBack(t *testing.T) {
	loseEach(t, map[string]absenceCase{
		"it was relabelled": {
			then: func(tr *Job) { tr.ObservePod(podOf(1, 20, tracked, stray), Watch) }, wantStrays: 1, wantKnown: true,
		},
		"it was relabelled twice, and deleted later": {
			then: func(tr *Job) {
				tr.ObservePod(podOf(1, 20, tracked, stray), Watch)
				tr.ObservePod(podOf(1, 30, tracked), Watch)
			},
			wantKnown: true,
		},
		"it was relabelled, and is back since": {
			then: func(tr *Job) {
				tr.ObservePod(podOf(1, 20, tracked, stray), Watch)
				tr.ObservePod(podOf(1, 60, tracked), Watch)
			},
			wantActive: 1, wantKnown: true,
		},
		"it is back since, and what was between was missed": {
			then: func(tr *Job) { tr.ObservePod(podOf(1, 60, tracked, inPhase(corev1.PodSucceeded)), Watch) }, wantRows: 1, wantKnown: true,
		},
		"it had another owner, and is back since": {
			then: func(tr *Job) {
				tr.PodLeft(podOf(1, 20, tracked), Watch)
				tr.ObservePod(podOf(1, 60, tracked), Watch)
			},
			wantActive: 1, wantKnown: true,
		},
		"it had another owner and was adopted again, which the answer shows before the watch": {
			then: func(tr *Job) {
				tr.ObservePod(podOf(1, 60, tracked), Response)
				tr.ObservePod(podOf(1, 20, tracked, inPhase(corev1.PodSucceeded)), Watch)
			},
			wantActive: 1, wantKnown: true,
		},
		"a later list holds it": {
			then:       func(tr *Job) { tr.BeginList().End([]*podcache.Pod{podOf(1, 60, tracked)}, "70") },
			wantActive: 1, wantKnown: true,
		},
	})
}

// Another replica created, counted and released a pod before a list, and the watch, which
// is behind, shows its life after that list.
func TestAPodThatWasGoneBeforeTheListCountsNowhere(t *testing.T) {
	recorded := ViewOptions{Uncounted: &batchv1.UncountedTerminatedPods{Failed: []types.UID{uidOf(1)}}}
	tr := New(Key{}, nil)
	tr.SetPolicy(selecting)
	tr.BeginList().End(nil, "50")
	if v := mustView(t, tr, recorded); len(v.Confirmed) != 1 {
		t.Error("the release of a pod that the list does not hold is not confirmed")
	}
	tr.ObservePod(podOf(1, 10, tracked), Watch)
	if v := mustView(t, tr, ViewOptions{}); v.Pods.Active != 0 {
		t.Error("a pod that was gone before the list is active")
	}
	tr.ObservePod(podOf(1, 20, tracked, inPhase(corev1.PodFailed)), Watch)
	if v := mustView(t, tr, ViewOptions{}); len(v.Unaccounted) != 0 {
		t.Errorf("a pod that was gone before the list counts again: %v", v.Unaccounted)
	} else if len(v.Retry.GetRecentFailures()) != 1 {
		t.Error("the failure of a pod that was gone before the list does not delay the next one")
	}
	tr.PodGone(uidOf(1), Watch)
	if _, known := tr.Pod(uidOf(1)); known {
		t.Error("a pod is known after the watch has shown its end")
	}
	tr.ObservePod(podOf(2, 60, tracked), Watch)
	if v := mustView(t, tr, ViewOptions{}); v.Pods.Active != 1 {
		t.Error("a pod that is newer than the list is not active")
	}
	tr.ObservePod(podOf(3, 10, tracked, stray), Watch)
	if len(tr.Strays()) != 1 || tr.SweepPods(100, isStored) {
		t.Error("a stray, which no list holds, is waited for")
	}
}

// The informer's store is ahead of its handlers. A handler may still show a pod that is not
// in the store any more; it shows the pod's end later.
func TestAPodThatWasSweptStaysAwayUntilTheHandlerHasShownItsEnd(t *testing.T) {
	tr := New(Key{}, nil)
	tr.ObservePod(podOf(1, 5, tracked, inPhase(corev1.PodSucceeded)), Response)
	tr.SweepPods(7, notStored)
	tr.ObservePod(podOf(1, 5, tracked, inPhase(corev1.PodSucceeded)), Watch)
	tr.ObservePod(podOf(1, 6, tracked, inPhase(corev1.PodSucceeded)), Watch)
	if v := mustView(t, tr, ViewOptions{}); len(v.Unaccounted) != 0 {
		t.Errorf("a pod that is gone is a row again: %v", v.Unaccounted)
	}
	tr.PodGone(uidOf(1), Watch)
	if len(tr.absent) != 0 {
		t.Errorf("%d absences are kept that nothing can undo", len(tr.absent))
	}
}

// A response has shown that the Job got a pod back, and the watch is still before that. Then a new
// list skips that version: the pod is another's again, and no handler tells the Job.
func TestAPodThatWasBackForAMomentIsSwept(t *testing.T) {
	tr := New(Key{}, nil)
	tr.ObservePod(podOf(1, 4, tracked), Response)
	tr.ObservePod(podOf(1, 1, tracked), Watch)
	tr.PodLeft(podOf(1, 2, tracked, ownedBy("another")), Watch)
	if tr.SweepPods(5, storedAs(podOf(1, 5, tracked, ownedBy("another")))) {
		t.Error("a pod of another Job is waited for")
	}
	if _, known := tr.Pod(uidOf(1)); known {
		t.Error("a pod of another Job is known")
	}
}

// The Job adopted a pod, and lost it again while the watch was broken. The new list shows the
// pod as it was before both, so no handler tells the Job.
func TestAPodThatWasTheJobsForAMomentCanBeAdoptedAgain(t *testing.T) {
	tr := New(Key{}, nil)
	tr.ObservePod(podOf(1, 5, tracked), Response)
	if awaiting := tr.SweepPods(10, storedAs(podOf(1, 10, tracked, ofNobody))); awaiting || !tr.Has(StaleClaims) {
		t.Errorf("the pod is waited for: %v, may be adopted: %v; want only the latter", awaiting, tr.Has(StaleClaims))
	}
	if _, known := tr.Pod(uidOf(1)); known {
		t.Error("a pod of nobody counts as the Job's")
	}
	tr.ObservePod(podOf(1, 12, tracked), Response)
	if _, known := tr.Pod(uidOf(1)); !known {
		t.Error("the pod is not known after the Job has adopted it again")
	}
}

// The watch shows that the Job lost a pod while a list is under way that began before that.
func TestAListDoesNotBringBackAPodThatTheWatchHasShownToBeLost(t *testing.T) {
	tr := New(Key{}, nil)
	tr.ObservePod(podOf(1, 5, tracked), Watch)
	list := tr.BeginList()
	tr.PodLeft(podOf(1, 7, tracked, ofNobody), Watch)
	list.End([]*podcache.Pod{podOf(1, 5, tracked)}, "6")
	if _, known := tr.Pod(uidOf(1)); known {
		t.Error("a pod of nobody counts as the Job's")
	}
	if len(tr.absent) != 0 {
		t.Errorf("%d absences are kept after the last call", len(tr.absent))
	}
}

// SweepPods asks for another SweepPods as long as an event may have been missed.
func TestSweepSaysWhetherTheWatchHasYetToShowSomething(t *testing.T) {
	tr := New(Key{}, nil)
	tr.ObservePod(podOf(1, 5, tracked), Watch)
	if tr.SweepPods(5, notStored) {
		t.Error("a pod that the watch has shown is waited for")
	}
	tr.ObservePod(podOf(2, 6, tracked), Response)
	if !tr.SweepPods(5, notStored) {
		t.Error("a pod that the watch has yet to reach is not waited for")
	}
	tr.ObservePod(podOf(2, 6, tracked), Watch)
	tr.BeginList().End([]*podcache.Pod{podOf(2, 6, tracked)}, "8")
	if !tr.SweepPods(7, notStored) {
		t.Error("a pod that the list did not hold is not waited for")
	}
	if tr.SweepPods(8, notStored) {
		t.Error("a pod that is gone is waited for")
	}
}
