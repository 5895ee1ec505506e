package faults

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubernetes#108645: a Job was deleted between a pod's event and the round for
// it; nobody removed the finalizer, and the namespace could not be deleted. Here
// the Job is deleted at each step of the ledger, in each way, and the executor
// goes on or is killed at that very moment.
func TestJobDeletedAtAnyStepReleasesItsPods_108645(t *testing.T) {
	t.Parallel()
	steps := map[string]struct {
		held Match
		skip int
	}{
		"before pods are recorded":         {Statuses, 0},
		"recorded, not released":           {Releases, 0},
		"released in part":                 {Releases, 1},
		"released, not counted":            {Statuses, 1},
		"while its pods are being created": {Creations, 2},
	}
	modes := []metav1.DeletionPropagation{
		metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
	}
	for step, at := range steps {
		for _, mode := range modes {
			for _, killed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, killed %v", step, mode, killed), func(t *testing.T) {
					t.Parallel()
					l := newLab(t)
					l.deleteAt(at.held, at.skip, mode, killed)
				})
			}
		}
	}
}

// deleteAt deletes a Job in the moment in which the executor makes a call.
func (l *lab) deleteAt(held Match, skip int, mode metav1.DeletionPropagation, killed bool) {
	gate := NewGate()
	defer gate.Open()
	if held == Creations {
		l.proxy.On(held, gate.Hold, Skip(skip))
	}
	job := l.create("deleted", spec(3, 3))
	if held != Creations {
		pods := l.active(job, 3)
		l.wait("deleted", "active", func(j *batchv1.Job) bool { return j.Status.Active == 3 })
		l.proxy.On(held, gate.Hold, Skip(skip))
		l.succeed(pods...)
	}
	l.arrived(gate)
	l.delete("deleted", mode)
	if killed {
		l.executor.kill()
	}
	gate.Open()
	if killed {
		l.restart()
	}
	l.gone(job)
	l.noneHeld()
	if mode == metav1.DeletePropagationOrphan {
		if left := l.remains(); !strings.Contains(left, "pod ") {
			l.Errorf("no pods were left as orphans")
		}
	}
}

// kubernetes#141346: taking the finalizer from an orphan timed out once, and was
// never tried again.
func TestOrphanFinalizerPatchTimesOut_141346(t *testing.T) {
	t.Parallel()
	cases := map[string]Fault{
		"the API server says it timed out": TimedOut,
		"no answer comes in a minute":      Hang,
		"the connection is lost":           Drop,
		"the answer is lost":               Lose,
		"the API server is overloaded":     Overloaded,
		"the API server has an error":      ServerError,
		"a conflict":                       Conflict,
	}
	for name, fault := range cases {
		for _, mode := range []metav1.DeletionPropagation{metav1.DeletePropagationOrphan, metav1.DeletePropagationBackground} {
			t.Run(name+", "+string(mode), func(t *testing.T) {
				t.Parallel()
				l := newLab(t)
				job := l.create("orphans", spec(3, 3))
				pods := l.active(job, 3)
				l.fail(pods[0])
				l.wait("orphans", "one failed", func(j *batchv1.Job) bool { return j.Status.Failed == 1 })
				// While the Job is there, its own rounds release pods as well.
				nothing := l.proxy.On(Releases, ServerError)
				l.delete("orphans", mode)
				l.gone(job)
				l.hits(nothing, 2)
				rule := l.proxy.On(Releases, fault, OnceEach())
				nothing.Off()
				l.hits(rule, 2)
				l.noneHeld()
			})
		}
	}
}

// A pod that failed keeps its finalizer until the pod that replaces it carries
// its index's count of failures. In a namespace that is being deleted there will
// be none, and pods go before their Job does.
func TestNamespaceGoesWhileAnIndexWaitsForItsReplacement(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.create("waits", withPerIndex(indexed(2, 2), 3))
	pods := l.active(l.job("waits"), 2)
	creations := l.proxy.On(Creations, ServerError)
	l.fail(pods[0])
	l.hits(creations, 1)
	if !held(&l.live(pods[0])[0]) {
		t.Fatal("the failed pod has lost its finalizer before it is replaced")
	}
	creations.Off()
	// The test ends when the namespace is gone.
}

// kubernetes#124798: the finalizer was taken from pods that a controller of
// another kind owned. Neither that, nor a Job of another API group, nor the
// labels of a Job of ours make a pod ours.
func TestPodsOfOthersKeepTheirFinalizer_124798(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	job := l.create("ours", spec(1, 1))
	pods := l.active(job, 1)
	owners := map[string]metav1.OwnerReference{
		"of-another-kind":     {APIVersion: "batch/v1", Kind: "CronJob"},
		"of-another-group":    {APIVersion: "example.com/v1", Kind: "Job"},
		"of-another-job-kind": {APIVersion: "batch/v2", Kind: "Job"},
	}
	for name, owner := range owners {
		// The garbage collector does not follow kinds that it does not know; the
		// owner of the known kind must be there.
		owner.Name, owner.UID, owner.Controller = "theirs", "00000000-0000-4000-8000-000000000001", ptr(true)
		if owner.Kind == "CronJob" {
			owner.UID = l.cronJob("theirs").UID
		}
		l.pod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: pods[0].Labels, OwnerReferences: []metav1.OwnerReference{owner}, Finalizers: []string{batchv1.JobTrackingFinalizer},
		}})
	}
	l.succeed(pods...)
	l.ends("ours", batchv1.JobComplete, 1, 0)
	l.delete("ours", metav1.DeletePropagationBackground)
	l.gone(job)
	l.restart()
	// A Job that comes later and ends shows that there was time for the pods.
	later := l.create("later", spec(1, 1))
	l.succeed(l.active(later, 1)...)
	l.ends("later", batchv1.JobComplete, 1, 0)
	for name := range owners {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
		live := l.live(*pod)
		if len(live) == 0 || !held(&live[0]) {
			t.Errorf("pod %s lost its finalizer", name)
			continue
		}
		l.letGo(live[0])
	}
}
