package world

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/podjob"
)

// foreign is a Job that another controller manages.
func foreign(job *batchv1.Job) { job.Spec.ManagedBy = new(others) }

func loose(pod *corev1.Pod) { pod.OwnerReferences = nil }

// podjob deletes what it left behind itself. A pod of a Job that never was may say that podjob has
// created it (I9).
func TestOwnershipOfWhatPodjobRemoves(t *testing.T) {
	runStreams(t, map[string]streamCase{
		"a pod of a Job that never was, deleted": {want: []string{"I9"}, play: func(tp *tape) {
			tp.judge.podjob = true
			tp.pod("other", "job-b", "b-0", noIndex)
			tp.deletes(executorA, "b-0")
		}},
		"the same, and it says that podjob has created it": {play: func(tp *tape) {
			tp.judge.podjob = true
			tp.pod("other", "job-b", "b-0", noIndex, func(pod *corev1.Pod) { pod.Annotations[podjob.GroupAnnotation] = "b" })
			tp.deletes(executorA, "b-0")
		}},
	})
}

// Unmanaged Jobs and their pods are left alone (I9), and no pod belongs to a Job by its name (I8).
func TestOwnership(t *testing.T) {
	adopt := func(tp *tape, finalizers ...string) {
		tp.edit(executorA, "loose", func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "a", UID: "job-a", Controller: new(true)}}
			pod.Finalizers = finalizers
		})
	}
	runStreams(t, map[string]streamCase{
		"a foreign Job's status": {want: []string{"I9"}, play: func(tp *tape) {
			tp.job("a", foreign)
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.Active = 1 })
		}},
		"a pod for a foreign Job": {want: []string{"I9"}, play: func(tp *tape) {
			tp.job("a", foreign)
			tp.pod(executorA, "job-a", "a-0", noIndex)
		}},
		"a foreign Job's pod": {want: []string{"I9", "I1"}, play: func(tp *tape) {
			tp.job("a", foreign)
			tp.pod("other", "job-a", "a-0", noIndex)
			tp.release(executorA, "a-0")
		}},
		"the finalizer that a foreign Job leaves behind": {play: func(tp *tape) {
			tp.job("a", foreign)
			tp.pod("other", "job-a", "a-0", noIndex)
			tp.removes(user, "jobs", "job-a")
			tp.release(executorA, "a-0")
		}},
		"a pod that a foreign Job leaves behind, deleted": {want: []string{"I9", "deletion"}, play: func(tp *tape) {
			tp.job("a", foreign)
			tp.pod("other", "job-a", "a-0", noIndex)
			tp.removes(user, "jobs", "job-a")
			tp.deletes(executorA, "a-0")
		}},
		"a pod of a ReplicaSet": {want: []string{"I9"}, play: func(tp *tape) {
			tp.pod("other", "rs", "a-0", noIndex, func(pod *corev1.Pod) { pod.OwnerReferences[0].Kind = "ReplicaSet" })
			tp.release(executorA, "a-0")
		}},
		"a loose pod, adopted": {play: func(tp *tape) {
			tp.job("a")
			tp.pod(user, "job-a", "loose", noIndex, loose)
			adopt(tp, batchv1.JobTrackingFinalizer)
		}},
		"a loose pod, adopted without the finalizer": {want: []string{"I1"}, play: func(tp *tape) {
			tp.job("a")
			tp.pod(user, "job-a", "loose", noIndex, loose, func(pod *corev1.Pod) { pod.Finalizers = nil })
			adopt(tp)
		}},
		"a loose pod that the Job does not select, adopted": {want: []string{"I8"}, play: func(tp *tape) {
			tp.job("a")
			tp.pod(user, "job-b", "loose", noIndex, loose)
			adopt(tp, batchv1.JobTrackingFinalizer)
		}},
		"a loose pod, deleted": {want: []string{"I9"}, play: func(tp *tape) {
			tp.job("a")
			tp.pod(user, "job-a", "loose", noIndex, loose)
			tp.deletes(executorA, "loose")
		}},
		"a Job that no CronJob asks for": {want: []string{"I9"}, play: func(tp *tape) {
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", UID: "x"}}
			tp.commit(executorA, "create", "jobs", "", job, job)
		}},
	})
}

// Writes are bounded by what happened (I11), and a Job at rest is left alone.
func TestWrites(t *testing.T) {
	breathe := func(tp *tape, times int, every time.Duration) {
		for i := range times {
			tp.wait(every)
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.Active = int32(i % 2) })
		}
	}
	runStreams(t, map[string]streamCase{
		"a hot loop": {want: []string{"writes"}, play: func(tp *tape) {
			tp.job("a")
			breathe(tp, 100, time.Millisecond)
		}},
		"as much as happens": {play: func(tp *tape) {
			tp.job("a")
			tp.pod(executorA, "job-a", "a-0", noIndex)
			for range 100 {
				tp.edit(kubelet, "a-0", func(*corev1.Pod) {})
				breathe(tp, 2, time.Millisecond)
			}
		}},
		"after faults": {play: func(tp *tape) {
			tp.job("a")
			for range 20 {
				tp.judge.disturbed(tp.now)
			}
			breathe(tp, 100, time.Millisecond)
		}},
		"one pod again and again": {want: []string{"writes"}, play: func(tp *tape) {
			tp.job("a")
			tp.pod(executorA, "job-a", "a-0", noIndex)
			for range 20 {
				tp.edit(executorA, "a-0", func(*corev1.Pod) {})
			}
		}},
		"a write at rest": {want: []string{"rest"}, play: func(tp *tape) {
			tp.job("a")
			tp.judge.faultsEnded(tp.now)
			breathe(tp, 1, time.Hour)
		}},
		"a write after something happened": {play: func(tp *tape) {
			tp.job("a")
			tp.judge.faultsEnded(tp.now)
			tp.wait(time.Hour)
			tp.spec(func(*batchv1.Job) {})
			breathe(tp, 1, 10*time.Minute)
		}},
		"a write when the deadline has passed": {play: func(tp *tape) {
			tp.job("a", deadline(3600))
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.StartTime = new(metav1.NewTime(tp.now)) })
			tp.judge.faultsEnded(tp.now)
			tp.wait(time.Hour)
			announces(tp, batchv1.JobFailureTarget, batchv1.JobReasonDeadlineExceeded)
		}},
	})
}

// A status that the API server refuses is a breach (I5).
func TestRefused(t *testing.T) {
	tp := newTape(t)
	tp.judge.refused(executorA, "update", "jobs/status", "ready > active")
	tp.judge.refused(user, "update", "jobs/status", "not ours")
	tp.judge.refused(executorA, "create", "pods", "not a status")
	if got := tp.judge.breaches(); len(got) != 1 || got[0].rule != "I5" {
		t.Errorf("breaches: %v, want one of I5", got)
	}
}

// A pod that another Job has counted counts anew for the Job that adopts it.
func TestAdoptionOfACountedPod(t *testing.T) {
	runStreams(t, map[string]streamCase{
		"and another one is too many": {play: func(tp *tape) {
			tp.job("b", indexedJob(2), func(job *batchv1.Job) { job.Spec.Selector.MatchLabels["job"] = "a" })
			tp.pod(executorA, "job-b", "loose", 0, func(pod *corev1.Pod) { pod.Labels["job"] = "a" })
			tp.ends("loose", 0)
			tp.status(executorA, "job-b", func(s *batchv1.JobStatus) { s.CompletedIndexes, s.Succeeded = "0", 1 })
			tp.release(executorA, "loose")
			tp.job("a", indexedJob(2))
			tp.pod(executorA, "job-a", "a-0", 0)
			tp.pod(executorA, "job-a", "a-1", 1)
			tp.edit("webhook", "loose", loose)
			tp.wait(time.Hour)
			tp.edit(executorA, "loose", func(pod *corev1.Pod) {
				pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "a", UID: "job-a", Controller: new(true)}}
				pod.Finalizers = []string{batchv1.JobTrackingFinalizer}
			})
			tp.release(executorA, "a-1")
			tp.deletes(executorA, "a-1")
		}},
	})
}
