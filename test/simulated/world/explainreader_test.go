package world

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/services/explain"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// explainedAt is when the Jobs of these tests were explained.
var explainedAt = time.Date(2026, time.March, 2, 8, 0, 0, 0, time.UTC)

func in(d time.Duration) *time.Time { return new(explainedAt.Add(d)) }

// written is an executor's write of a Job's status, after which the Job has failed for a reason; "": it has not.
func written(after time.Duration, reason string) *apiserver.Write {
	before, job := &batchv1.Job{}, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "job"}}
	before.UID, job.Status.Terminating = job.UID, new(int32(1))
	if reason != "" {
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, Reason: reason}}
	}
	return &apiserver.Write{Verb: "update", Resource: "jobs", Subresource: "status", By: executorName + "-1", Time: *in(after), UID: job.UID, Old: before, New: job}
}

// refusedPod is an executor's event that the API server has refused a pod.
func refusedPod(after time.Duration) *apiserver.Write {
	event := &corev1.Event{Reason: "FailedCreate", InvolvedObject: corev1.ObjectReference{UID: "job"}}
	return &apiserver.Write{Verb: "create", Resource: "events", By: executorName + "-1", Time: *in(after), New: event}
}

// What comes is right if it was told, or is one of the few things that may come before; anything else is wrong.
func TestWhatComesIsHeldAgainstWhatWasTold(t *testing.T) {
	create := []explain.Step{{Kind: "create"}}
	blocked := explain.Report{
		State: explain.Blocked, Next: &explain.Next{Refused: true, Steps: create},
		Ends:  []string{"Failed (StartDeadlineExceeded) at 2026-03-02T08:00:40Z (in 40s), unless a pod has run by then", "Failed (DeadlineExceeded) at 2026-03-02T08:01:00Z (in 1m)"},
		Waits: []explain.Wait{{Until: in(20 * time.Second)}},
	}
	backsOff := explain.Report{State: explain.BackingOff, Next: &explain.Next{At: in(20 * time.Second), Steps: create}, Waits: []explain.Wait{{Until: in(10 * time.Second)}, {Until: in(30 * time.Second)}}}
	for name, tc := range map[string]struct {
		said    explain.Report
		write   *apiserver.Write
		deleted *time.Time // When a pod's deletion is due.
		wrong   bool
	}{
		"blocked, and the deadline to start passes":               {said: blocked, write: written(40*time.Second, "StartDeadlineExceeded")},
		"blocked, and the deadline passes":                        {said: blocked, write: written(60*time.Second, "DeadlineExceeded")},
		"blocked, and a deadline passes for no reason":            {said: blocked, write: written(30*time.Second, "StartDeadlineExceeded"), wrong: true},
		"blocked, and it fails for another reason":                {said: blocked, write: written(40*time.Second, "DeadlineExceeded"), wrong: true},
		"blocked, and a wait ends":                                {said: blocked, write: written(20*time.Second, "")},
		"blocked, and a status that no wait tells of":             {said: blocked, write: written(10*time.Second, ""), wrong: true},
		"blocked, and a pod is refused":                           {said: blocked, write: refusedPod(5 * time.Second)},
		"backing off, and a wait ends before":                     {said: backsOff, write: written(10*time.Second, "")},
		"backing off, and a wait ends after the time":             {said: backsOff, write: written(30*time.Second, ""), wrong: true},
		"backing off, and a pod is refused at the time":           {said: backsOff, write: refusedPod(20 * time.Second)},
		"backing off, and a pod is refused long before":           {said: backsOff, write: refusedPod(10 * time.Second), wrong: true},
		"backing off, and a pod is refused long after":            {said: backsOff, write: refusedPod(30 * time.Second), wrong: true},
		"backing off, and a pod that is being deleted is overdue": {said: backsOff, write: written(15*time.Second, ""), deleted: in(5 * time.Second)},
		"backing off, and a pod that is being deleted is not":     {said: backsOff, write: written(15*time.Second, ""), deleted: in(10 * time.Second), wrong: true},
		"nothing comes, and a pod is refused":                     {said: explain.Report{State: explain.Running}, write: refusedPod(time.Second), wrong: true},
		"a deadline comes, and a pod is refused before it":        {said: explain.Report{State: explain.Running, Next: &explain.Next{At: in(20 * time.Second), Steps: []explain.Step{{Kind: "condition"}}}}, write: refusedPod(20 * time.Second), wrong: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReader(&plan{begins: explainedAt})
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "job"}}
			job.Annotations = map[string]string{wire.Policy: `{"job":{"terminationDeadlineSeconds":10}}`}
			r.jobs[types.UID("job")] = &restingJob{job: job, said: &tc.said, saidAt: explainedAt}
			if tc.deleted != nil {
				owner := *metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))
				r.pods["pod"] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{owner}, DeletionTimestamp: &metav1.Time{Time: *tc.deleted}}}
			}
			r.compare(tc.write)
			r.note(tc.write)
			if wrong := len(r.wrong) > 0; wrong != tc.wrong {
				t.Errorf("wrong: %v, want %v: %q", wrong, tc.wrong, r.wrong)
			}
		})
	}
}

// A wait ends when the next thing happens, unless it is for a pod that is being deleted.
func TestWaitsAreHeldAgainstWhatComesNext(t *testing.T) {
	const deleted = "pod a, which is being deleted, counts as failed 58s after its deletion was due"
	at := func(d time.Duration) *explain.Next { return &explain.Next{At: in(d)} }
	for name, tc := range map[string]struct {
		waits []explain.Wait
		next  *explain.Next
		wrong bool
	}{
		"the wait":                               {waits: []explain.Wait{{Until: in(20 * time.Second)}}, next: at(20 * time.Second)},
		"before the wait":                        {waits: []explain.Wait{{Until: in(20 * time.Second)}}, next: at(10 * time.Second), wrong: true},
		"after the wait":                         {waits: []explain.Wait{{Until: in(20 * time.Second)}}, next: at(30 * time.Second), wrong: true},
		"nothing after the wait":                 {waits: []explain.Wait{{Until: in(20 * time.Second)}}, wrong: true},
		"a deleted pod":                          {waits: []explain.Wait{{For: deleted, Until: in(10 * time.Second)}, {Until: in(20 * time.Second)}}, next: at(10 * time.Second)},
		"after a deleted pod":                    {waits: []explain.Wait{{For: deleted, Until: in(10 * time.Second)}, {Until: in(20 * time.Second)}}, next: at(20 * time.Second)},
		"between a deleted pod and the wait":     {waits: []explain.Wait{{For: deleted, Until: in(10 * time.Second)}, {Until: in(20 * time.Second)}}, next: at(15 * time.Second)},
		"before a deleted pod and the wait":      {waits: []explain.Wait{{For: deleted, Until: in(10 * time.Second)}, {Until: in(20 * time.Second)}}, next: at(5 * time.Second), wrong: true},
		"after a deleted pod and the wait":       {waits: []explain.Wait{{For: deleted, Until: in(10 * time.Second)}, {Until: in(20 * time.Second)}}, next: at(30 * time.Second), wrong: true},
		"nothing after a deleted pod":            {waits: []explain.Wait{{For: deleted, Until: in(10 * time.Second)}}, wrong: true},
		"nothing, if the deleted pod's node may": {waits: []explain.Wait{{For: deleted + ", if its node is not Ready", Until: in(10 * time.Second)}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReader(&plan{begins: explainedAt})
			r.waits(&restingJob{job: &batchv1.Job{}, said: &explain.Report{Waits: tc.waits, Next: tc.next}, saidAt: explainedAt})
			if wrong := len(r.wrong) > 0; wrong != tc.wrong {
				t.Errorf("wrong: %v, want %v: %q", wrong, tc.wrong, r.wrong)
			}
		})
	}
}
