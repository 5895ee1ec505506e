package faults

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/test/kit/objects"
)

// Reports about the built-in controller, played against the executor. The lab fails a test if the
// API server refuses a status.

// kubernetes#142142: a Job that was created again under its name waited, for up to five minutes, for
// the pods of the one before.
func TestARecreatedJobStartsThoughAPodOfTheOneBeforeIsOnItsWay_142142(t *testing.T) {
	t.Parallel()
	for name, suspended := range map[string]bool{"at once": false, "suspended": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, release := newLab(t), make(chan struct{})
			creation := l.proxy.On(Creations, Until(release), Times(1))
			before := l.create("again", spec(1, 1))
			l.hits(creation, 1)
			l.delete("again", metav1.DeletePropagationBackground)
			l.gone(before)
			s := spec(1, 1)
			s.Suspend = &suspended
			job := l.create("again", s)
			close(release)
			if suspended {
				l.wait("again", "suspended", func(j *batchv1.Job) bool { return isTrue(j, batchv1.JobSuspended) })
				l.patch("again", `{"spec":{"suspend":false}}`)
			}
			l.succeed(l.active(job, 1)...)
			l.ends("again", batchv1.JobComplete, 1, 0)
			l.wantCreated[job.UID] = 1
			l.noneHeld() // Nor does a pod of the Job before.
		})
	}
}

// kubernetes#141346: a pod of a deleted Job kept its finalizer for ever if its removal failed once
// and nothing else happened to the pod.
func TestAPodOfADeletedJobIsReleasedThoughNothingMoreHappensToIt_141346(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	job := l.create("leaves", spec(1, 1))
	pod := l.active(job, 1)[0]
	releases := l.proxy.On(Releases, TimedOut)
	l.succeed(pod)
	l.hits(releases, 1)
	l.delete("leaves", metav1.DeletePropagationBackground)
	l.gone(job)
	l.eventually("the pod is being deleted", func() (bool, string) {
		pods := l.pods(job)
		return len(pods) == 1 && pods[0].DeletionTimestamp != nil, describePods(pods)
	})
	l.hits(releases, releases.Hits()+1)
	releases.Off()
	l.eventually("the pod is gone", func() (bool, string) {
		pods := l.pods(job)
		return len(pods) == 0, describePods(pods)
	})
}

// kubernetes#139428: during a retry delay, a status had fewer active than ready pods, which the API
// server refuses. A status is due meanwhile, because a pod is recorded and is not released at once. A
// pod that failed under limits per index is recorded only after the delay; one that succeeded is
// recorded now.
func TestCountsAreWrittenDuringARetryDelay_139428(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		spec                     batchv1.JobSpec
		succeeds                 int
		active, succeeded, fails int32
	}{
		"one limit":        {spec: spec(3, 3), active: 2, fails: 1},
		"limits per index": {spec: withPerIndex(indexed(3, 3), 2), succeeds: 1, active: 1, succeeded: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "--pod-failure-backoff=10m")
			job := l.create("delayed", tc.spec)
			pods := l.active(job, 3)
			l.run(pods...)
			l.wait("delayed", "3 pods are ready", func(j *batchv1.Job) bool { return ready(j) == 3 })
			releases := l.proxy.On(Releases, ServerError)
			l.fail(pods[0])
			l.succeed(pods[1 : 1+tc.succeeds]...)
			l.hits(releases, 1)
			releases.Off()
			l.wait("delayed", "what ended is counted", func(j *batchv1.Job) bool {
				s := j.Status
				return s.Active == tc.active && ready(j) == tc.active && s.Succeeded == tc.succeeded && s.Failed == tc.fails
			})
			l.wantCreated[job.UID] = 3 // None is replaced yet.
			l.delete("delayed", metav1.DeletePropagationBackground)
		})
	}
}

// kubernetes#139281: the template of a Job that was suspended again could not be changed, although
// nothing ran any more.
func TestTheTemplateOfASuspendedJobChangesAsSoonAsNothingIsActive_139281(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	job := l.create("resumed", spec(1, 1))
	pod := l.active(job, 1)[0]
	l.bind(pod)
	l.run(pod)
	l.wait("resumed", "active", func(j *batchv1.Job) bool { return ready(j) == 1 })
	l.patch("resumed", `{"spec":{"suspend":true}}`)
	l.wait("resumed", "nothing is active", func(j *batchv1.Job) bool { return j.Status.Active == 0 })
	l.patch("resumed", `{"spec":{"template":{"spec":{"nodeSelector":{"pool":"batch"},"containers":[{"name":"main","image":"none","resources":{"requests":{"cpu":"1"}}}]}}}}`)
	l.end(pod)
	l.patch("resumed", `{"spec":{"suspend":false}}`)
	next := l.active(job, 1)[0]
	if next.Spec.NodeSelector["pool"] != "batch" || next.Spec.Containers[0].Resources.Requests.Cpu().Value() != 1 {
		t.Errorf("the next pod has node selector %v and requests %v", next.Spec.NodeSelector, next.Spec.Containers[0].Resources.Requests)
	}
	l.succeed(next)
	l.ends("resumed", batchv1.JobComplete, 1, 0)
	l.wantCreated[job.UID] = 2
}

// kueue#13552: a Job that had an index that failed for good was shrunk below that index, and no
// status was accepted any more.
func TestAJobIsShrunkBelowAFailedIndex_kueue13552(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	job := l.create("shrunk", withPerIndex(indexed(6, 6), 0))
	pods := byIndex(l.active(job, 6))
	l.fail(pods["5"])
	l.wait("shrunk", "index 5 failed", func(j *batchv1.Job) bool { return j.Status.FailedIndexes != nil && *j.Status.FailedIndexes == "5" })
	l.patch("shrunk", `{"spec":{"completions":3,"parallelism":3}}`)
	l.active(job, 3)
	l.succeed(pods["0"], pods["1"], pods["2"])
	l.ends("shrunk", batchv1.JobComplete, 3, 1)
	if j := l.job("shrunk"); j.Status.CompletedIndexes != "0-2" || j.Status.FailedIndexes == nil || *j.Status.FailedIndexes != "" {
		t.Errorf("the shrunk Job ended with %s", describe(j))
	}
	l.wantCreated[job.UID] = 6
}

// kubernetes#141316: a pod policy that ignores disruptions knows them by the condition
// DisruptionTarget, which an eviction sets, and a plain deletion does not. So a drain by plain
// deletions costs the Job its retries, as in the built-in controller.
func TestADeletedPodCountsAsFailedUnlessItIsMarkedAsDisrupted_141316(t *testing.T) {
	t.Parallel()
	for name, marked := range map[string]corev1.PodConditionType{"deleted": "", "evicted": corev1.DisruptionTarget} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			s := withLimit(spec(1, 1), 0)
			s.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
				Action:          batchv1.PodFailurePolicyActionIgnore,
				OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
			}}}
			job := l.create("drained", s)
			pod := l.active(job, 1)[0]
			l.bind(pod)
			l.run(pod)
			objects.Delete(t, client.CoreV1().Pods(l.namespace), pod.Name, metav1.DeleteOptions{})
			l.setStatus(pod, endedStatus(corev1.PodFailed, ending{exit: 143, condition: marked}))
			l.remove(pod)
			if marked == "" {
				l.ends("drained", batchv1.JobFailed, 0, 1)
				l.wantCreated[job.UID] = 1
				return
			}
			l.succeed(l.active(job, 1)...)
			l.ends("drained", batchv1.JobComplete, 1, 0)
			l.wantCreated[job.UID] = 2
		})
	}
}
