package faults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubernetes#105200: a pod was counted twice, because the cache still showed
// the finalizer that had just been removed.
func TestPodIsCountedOnceWhileTheCacheShowsItsFinalizer_105200(t *testing.T) {
	t.Parallel()
	cases := map[string]Fault{
		"the release is answered":           Pass,
		"the answer to the release is lost": Lose,
	}
	for name, fault := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			job := l.create("stale", spec(3, 3))
			pods := l.active(job, 3)
			held := make(chan func(), 1)
			l.proxy.On(Releases, func(x *Exchange) {
				held <- l.proxy.HoldWatch("pods")
				fault(x)
			}, Times(1))
			l.succeed(pods[0])
			release := <-held
			l.wait("stale", "one pod is counted", func(j *batchv1.Job) bool { return j.Status.Succeeded == 1 })
			l.touch("stale", 5)
			release()
			l.succeed(pods[1:]...)
			l.ends("stale", batchv1.JobComplete, 3, 0)
			l.wantCreated[job.UID] = 3
		})
	}
}

// kubernetes#104666: with more than 500 finished pods, UIDs were dropped from
// the status while their pods still had finalizers.
func TestMoreFinishedPodsThanAStatusHolds_104666(t *testing.T) {
	t.Parallel()
	for _, n := range []int32{501, 1001} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			job := l.create("many", spec(n, n))
			pods := l.active(job, int(n))
			// Pass is among them: one pod in four is released at the first try.
			random := rand.New(rand.NewPCG(104666, uint64(n)))
			l.proxy.On(Releases, OneOf(random, ServerError, Lose, Overloaded, Pass), OnceEach())
			l.allAtOnce(pods, func(pod corev1.Pod) { l.succeed(pod) })
			l.ends("many", batchv1.JobComplete, n, 0)
			l.wantCreated[job.UID] = int(n)
			for _, j := range l.seen.versionsOf(job.UID) {
				if listed := len(uncounted(j)); listed > 500 {
					t.Errorf("a status lists %d pods, which is more than 500", listed)
				}
			}
		})
	}
}

// allAtOnce does something with many pods, some at the same time.
func (l *lab) allAtOnce(pods []corev1.Pod, do func(corev1.Pod)) {
	var all sync.WaitGroup
	slots := make(chan struct{}, 16)
	for _, pod := range pods {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			do(pod)
		})
	}
	all.Wait()
}

// kubernetes#109429: a Job was declared finished before all pods that had been
// created for it were seen.
func TestNotFinishedWhileACreationIsInFlight_109429(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := spec(2, 2)
	s.BackoffLimit = ptr[int32](0)
	// The second pod is there, but neither an answer, nor a list, nor the watch
	// tells of it.
	var release func()
	l.proxy.On(Creations, func(x *Exchange) { Lose(x) }, Skip(1), Times(1))
	lists := l.proxy.On(Match{Verb: "list", Resource: "pods"}, ServerError)
	release = l.proxy.HoldWatch("pods")
	job := l.create("hasty", s)
	pods := l.active(job, 2)
	l.fail(pods[0], pods[1])
	l.hits(lists, 2)
	if j := l.job("hasty"); isFinished(j) {
		t.Errorf("the Job is finished although a pod of it is not known: %s", describe(j))
	}
	lists.Off()
	release()
	l.ends("hasty", batchv1.JobFailed, 0, 2)
	l.wantCreated[job.UID] = 2
}

// kubernetes#119159: a Job was declared finished while pods still held their
// finalizers.
func TestNotFinishedWhileAPodHoldsItsFinalizer_119159(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		spec  batchv1.JobSpec
		end   func(*lab, ...corev1.Pod)
		want  batchv1.JobConditionType
		first batchv1.JobConditionType
	}{
		"all succeed":         {spec(3, 3), (*lab).succeed, batchv1.JobComplete, batchv1.JobSuccessCriteriaMet},
		"all indexes succeed": {indexed(3, 3), (*lab).succeed, batchv1.JobComplete, batchv1.JobSuccessCriteriaMet},
		"too many fail":       {withLimit(spec(3, 3), 0), (*lab).fail, batchv1.JobFailed, batchv1.JobFailureTarget},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			job := l.create("early", tc.spec)
			pods := l.active(job, 3)
			stuck := l.proxy.On(Match{Verb: "patch", Resource: "pods", Name: pods[1].Name}, ServerError)
			tc.end(l, pods...)
			l.wait("early", "the verdict is announced", func(j *batchv1.Job) bool { return isTrue(j, tc.first) })
			l.hits(stuck, 2)
			if j := l.job("early"); isFinished(j) {
				t.Errorf("the Job is finished although a pod holds its finalizer: %s", describe(j))
			}
			stuck.Off()
			if j := l.finished("early"); !isTrue(j, tc.want) || j.Status.Succeeded+j.Status.Failed != 3 {
				t.Errorf("want %s with 3 pods counted; it has %s", tc.want, describe(j))
			}
			l.wantCreated[job.UID] = 3
		})
	}
}

func withLimit(s batchv1.JobSpec, n int32) batchv1.JobSpec {
	s.BackoffLimit = &n
	return s
}

// kubernetes#125410: a pod that had been recorded as succeeded turned into a
// failed one; its UID then stood in both lists, which the API server refuses,
// for ever.
func TestFirstVerdictStaysWhenThePhaseFlips_125410(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		spec              batchv1.JobSpec
		first, then       func(*lab, ...corev1.Pod)
		condition         batchv1.JobConditionType
		succeeded, failed int32
	}{
		"succeeded, then failed": {spec(1, 1), (*lab).succeed, (*lab).fail, batchv1.JobComplete, 1, 0},
		// The status has the index, not the UID: the index stays complete, and the
		// pod may count as failed as well, as upstream has it.
		"an index succeeded, then failed": {indexed(1, 1), (*lab).succeed, (*lab).fail, batchv1.JobComplete, 1, 1},
		"failed, then succeeded":          {withLimit(spec(1, 1), 0), (*lab).fail, (*lab).succeed, batchv1.JobFailed, 0, 1},
		"an index failed, then succeeded": {withLimit(indexed(1, 1), 0), (*lab).fail, (*lab).succeed, batchv1.JobFailed, 0, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			job := l.create("flips", tc.spec)
			pods := l.active(job, 1)
			gate := NewGate()
			l.proxy.On(Releases, gate.Then(ServerError), Times(1))
			tc.first(l, pods...)
			l.arrived(gate) // The status holds the verdict now.
			tc.then(l, pods...)
			l.touch("flips", 2)
			gate.Open()
			if j := l.finished("flips"); !isTrue(j, tc.condition) || j.Status.Succeeded != tc.succeeded || j.Status.Failed > tc.failed {
				t.Errorf("want %s with %d succeeded and at most %d failed; it has %s", tc.condition, tc.succeeded, tc.failed, describe(j))
			}
			l.wantCreated[job.UID] = 1
		})
	}
}

// kubernetes#139428: while the Job waited to retry a failed pod, it was said to
// have no active pods though some were ready. The API server refuses that, and
// nothing was counted or released any more.
func TestFailuresAreCountedWhileTheRetryIsDelayed_139428(t *testing.T) {
	t.Parallel()
	cases := map[string]batchv1.JobSpec{
		"one limit for all": spec(3, 3),
		"limits per index":  withPerIndex(indexed(3, 3), 3),
	}
	for name, s := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "--pod-failure-backoff=10m")
			job := l.create("waits", s)
			pods := l.active(job, 3)
			l.run(pods...)
			l.wait("waits", "three are ready", func(j *batchv1.Job) bool { return value(j.Status.Ready) == 3 })
			l.fail(pods[0])
			l.wait("waits", "one fails, two are ready", func(j *batchv1.Job) bool {
				counted := j.Status.Failed == 1 || s.BackoffLimitPerIndex != nil
				return counted && j.Status.Active == 2 && value(j.Status.Ready) == 2
			})
			l.succeed(pods[1])
			l.wait("waits", "one has succeeded meanwhile", func(j *batchv1.Job) bool { return j.Status.Succeeded == 1 && value(j.Status.Ready) == 1 })
			l.delete("waits", metav1.DeletePropagationBackground)
			l.gone(job)
		})
	}
}

func withPerIndex(s batchv1.JobSpec, n int32) batchv1.JobSpec {
	s.BackoffLimitPerIndex = &n
	return s
}

// kubernetes#123775: a Job was Failed or Complete while pods of it still ran
// down. What is announced comes first, then the pods end, then it is finished.
func TestFinishedOnlyWhenSlowPodsHaveEnded_123775(t *testing.T) {
	t.Parallel()
	policy := indexed(3, 3)
	policy.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededCount: ptr[int32](1)}}}
	deadline := spec(3, 3)
	deadline.ActiveDeadlineSeconds = ptr[int64](1)
	cases := map[string]struct {
		spec              batchv1.JobSpec
		first             func(*lab, ...corev1.Pod)
		interim, terminal batchv1.JobConditionType
		succeeded, failed int32
	}{
		"a pod fails":            {withLimit(spec(3, 3), 0), (*lab).fail, batchv1.JobFailureTarget, batchv1.JobFailed, 0, 3},
		"an index is enough":     {policy, (*lab).succeed, batchv1.JobSuccessCriteriaMet, batchv1.JobComplete, 1, 2},
		"the deadline is passed": {deadline, (*lab).run, batchv1.JobFailureTarget, batchv1.JobFailed, 0, 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			job := l.create("slow", tc.spec)
			pods := l.active(job, 3)
			l.bind(pods...)
			l.run(pods...)
			tc.first(l, pods[0])
			l.wait("slow", "the verdict is announced and pods end", func(j *batchv1.Job) bool {
				return isTrue(j, tc.interim) && value(j.Status.Terminating) >= 2 && j.Status.Active == 0
			})
			for _, pod := range pods {
				if j := l.job("slow"); isFinished(j) {
					t.Errorf("the Job is finished while pods are terminating: %s", describe(j))
				}
				l.end(l.live(pod)...)
			}
			if j := l.finished("slow"); !isTrue(j, tc.terminal) || j.Status.Succeeded != tc.succeeded || j.Status.Failed > tc.failed {
				t.Errorf("want %s with %d succeeded; it has %s", tc.terminal, tc.succeeded, describe(j))
			}
			l.wantCreated[job.UID] = 3
		})
	}
}

// refusals is how many statuses the API server refused as invalid.
func (l *lab) refusals() int {
	n := 0
	for _, call := range l.proxy.Calls(Statuses) {
		if call.Code == http.StatusUnprocessableEntity {
			n++
		}
	}
	return n
}
