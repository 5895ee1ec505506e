package faults

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubernetes#142142, #131917: a Job that was deleted and created again under its
// name, while pods of the old one were being created, got none for five minutes.
// What comes late of the old Job must not hit the new one, and must not stay.
func TestSameNameAgainWhileCreationsAreInFlight_142142(t *testing.T) {
	t.Parallel()
	cases := map[string]Fault{
		"the creations come late":             nil,
		"the answers to them are lost":        Lose,
		"they fail without anybody's knowing": Drop,
	}
	for name, fault := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			gate := NewGate()
			defer gate.Open()
			if fault == nil {
				fault = gate.Hold
			}
			late := l.proxy.On(Creations, fault, Times(1))
			old := l.create("again", spec(3, 3))
			l.hits(late, 1)
			l.delete("again", metav1.DeletePropagationBackground)
			l.gone(old)
			job := l.create("again", spec(3, 3))
			pods := l.active(job, 3)
			gate.Open()
			l.succeed(pods...)
			l.ends("again", batchv1.JobComplete, 3, 0)
			l.eventually("no pod of the old Job is left", func() (bool, string) { return len(l.pods(old)) == 0, l.remains() })
			l.wantCreated[job.UID] = 3
		})
	}
}

// kubernetes#130103, #130683: a Job with one completion got a second pod, because
// what told of the first was late. However long one of the views is late, or
// both, no round may create more than is missing.
func TestOnePodWhileTheViewIsStale_130103(t *testing.T) {
	t.Parallel()
	cases := map[string][]string{
		"pods are seen late": {"pods"},
		"Jobs are seen late": {"jobs"},
		"both are seen late": {"pods", "jobs"},
	}
	for name, late := range cases {
		for _, s := range []batchv1.JobSpec{spec(1, 1), indexed(1, 1)} {
			t.Run(fmt.Sprintf("%s, indexed %v", name, s.CompletionMode != nil), func(t *testing.T) {
				t.Parallel()
				l := newLab(t)
				job := l.create("single", s)
				pods := l.active(job, 1)
				l.wait("single", "one pod active", func(j *batchv1.Job) bool { return j.Status.Active == 1 })
				l.provokeSecondPod(pods[0], late)
				l.ends("single", batchv1.JobComplete, 1, 0)
				l.wantCreated[job.UID] = 1
			})
		}
	}
}

// provokeSecondPod lets a Job's only pod succeed while the executor is told late
// of some resources. As soon as the pod is released, a user deletes it: then only
// the Job's status tells of the success.
func (l *lab) provokeSecondPod(pod corev1.Pod, late []string) {
	l.Helper()
	// The status of the Job is what the executor writes itself; the answers to
	// half of the writes are lost.
	l.proxy.On(Statuses, Lose, Times(1))
	l.proxy.On(Releases, Lose, Times(1))
	l.succeed(pod)
	if late[0] == "pods" {
		// Somebody must see that the pod has ended.
		l.wait("single", "the success is recorded", func(j *batchv1.Job) bool { return len(uncounted(j)) > 0 || j.Status.CompletedIndexes != "" })
	}
	for _, resource := range late {
		defer l.proxy.HoldWatch(resource)()
	}
	l.eventually("the pod is released", func() (bool, string) {
		live := l.live(pod)
		return len(live) == 0 || !held(&live[0]), "it holds the finalizer"
	})
	l.remove(pod)
	l.touch("single", 5)
	l.wait("single", "the success is counted", func(j *batchv1.Job) bool { return j.Status.Succeeded == 1 })
	l.touch("single", 5)
}

// The same before the first pod ends: the watch does not tell of it, its
// creation was not answered, and Job events keep coming.
func TestOnePodWhileItsCreationIsUnknown_130683(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	release := l.proxy.HoldWatch("pods")
	lost := l.proxy.On(Creations, Lose, Times(1))
	lists := l.proxy.On(Match{Verb: "list", Resource: "pods"}, ServerError, Times(2))
	job := l.create("single", spec(1, 1))
	l.hits(lost, 1)
	for range 3 {
		l.touch("single", 3)
		time.Sleep(300 * time.Millisecond) // longer than rounds are apart
	}
	l.hits(lists, 2)
	l.wait("single", "its pod is found", func(j *batchv1.Job) bool { return j.Status.Active == 1 })
	l.touch("single", 3)
	release()
	l.succeed(l.active(job, 1)...)
	l.ends("single", batchv1.JobComplete, 1, 0)
	l.wantCreated[job.UID] = 1
}

// kubernetes#78796: the creation of a pod timed out, and nothing was tried for
// hours. Whether it was carried out or not, there are in the end as many pods as
// asked for, and never more.
func TestCreationWithoutAnAnswer_78796(t *testing.T) {
	t.Parallel()
	cases := map[string]Fault{
		"carried out, and the answer is lost": Lose,
		"not carried out":                     Drop,
		"the API server says it timed out":    TimedOut,
		"carried out, and it says the same":   ApplyThen(TimedOut),
		"no answer comes in a minute":         Hang,
	}
	for name, fault := range cases {
		for _, s := range []batchv1.JobSpec{spec(5, 5), indexed(5, 5)} {
			t.Run(fmt.Sprintf("%s, indexed %v", name, s.CompletionMode != nil), func(t *testing.T) {
				t.Parallel()
				l := newLab(t)
				l.proxy.On(Creations, fault, Skip(1), Times(2))
				// Otherwise the watch would soon tell of the pods.
				release := l.proxy.HoldWatch("pods")
				job := l.create("unanswered", s)
				pods := l.active(job, 5)
				release()
				l.succeed(pods...)
				l.ends("unanswered", batchv1.JobComplete, 5, 0)
				l.wantCreated[job.UID] = 5
			})
		}
	}
}

// kubernetes#27997: one Job made 84,000 pods. However pods end, a Job makes no
// more than its back-off limit allows, and a round no more than the flag.
func TestPodsAreBounded_27997(t *testing.T) {
	t.Parallel()
	t.Run("in all", func(t *testing.T) {
		t.Parallel()
		l := newLab(t, "--pod-failure-backoff=1ms", "--max-pod-failure-backoff=1ms")
		job := l.create("failing", withLimit(spec(1, 1), 12))
		l.eventually("the Job has failed", func() (bool, string) {
			for _, pod := range l.pods(job) {
				if !ended(&pod) {
					l.fail(pod)
				}
			}
			j := l.job("failing")
			return isFinished(j), describe(j)
		})
		l.ends("failing", batchv1.JobFailed, 0, 13)
		l.wantCreated[job.UID] = 13
	})
	t.Run("in a round", func(t *testing.T) {
		t.Parallel()
		l := newLab(t, "--max-pod-changes-per-sync=7")
		job := l.create("wide", spec(40, 40))
		l.succeed(l.active(job, 40)...)
		l.ends("wide", batchv1.JobComplete, 40, 0)
		l.wantCreated[job.UID] = 40
		if rounds := l.executor.creatingRounds(t); rounds < 6 {
			t.Errorf("40 pods were created in %d rounds; with 7 in each there are 6", rounds)
		}
	})
	t.Run("that cannot be created", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		refused := l.proxy.On(Creations, ServerError)
		l.create("refused", spec(40, 40))
		l.hits(refused, 4)
		tries := l.proxy.Calls(Creations)
		for i := range tries[1:] {
			// One try at a time, each longer after the one before: 1 s, 2 s, 4 s.
			if waited, least := tries[i+1].Began.Sub(tries[i].Ended), time.Second<<i; waited < least*9/10 {
				t.Errorf("try %d came %s after the one before, which failed; want at least %s", i+2, waited, least)
			}
		}
		refused.Off()
	})
}

// kubernetes#89466: two controllers believed to lead at once. Each may create
// what it misses, so that there may be twice as many pods as asked for, but the
// surplus is deleted, each pod counts once, and the Job ends as it should.
func TestTwoExecutorsAtOnce_89466(t *testing.T) {
	t.Parallel()
	for _, s := range []batchv1.JobSpec{spec(12, 4), indexed(12, 4)} {
		t.Run(fmt.Sprintf("indexed %v", s.CompletionMode != nil), func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			second := l.startExecutor(l.newProxy())
			l.eventually("the second executor is ready", second.ready)
			job := l.create("shared", s)
			l.eventually("the Job ends", func() (bool, string) {
				live := l.pods(job)
				for _, pod := range live {
					if !ended(&pod) && pod.DeletionTimestamp == nil {
						l.succeed(pod)
					}
				}
				j := l.job("shared")
				return isFinished(j), describe(j)
			})
			l.countsAreTrue(l.finished("shared"))
			if n := l.created(job); n > 2*12 {
				t.Errorf("%d pods were created by two executors for 12 completions", n)
			}
			second.stop(t)
		})
	}
}

// kubernetes#89466 too: after a restart, a cache may show what was before the
// restart. So the first reads of an executor are never from a cache, whether it
// may stream them or has to list.
func TestFirstReadsAreNotFromACache_89466(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	noStreams := l.proxy.On(Match{Verb: "watch"}, Refuse(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid),
		When(func(c Call) bool { return strings.Contains(c.Query, "sendInitialEvents=true") }))
	l.restart()
	for _, resource := range []string{"jobs", "pods"} {
		streams, lists := l.proxy.WatchQueries(resource), l.proxy.Calls(Match{Verb: "list", Resource: resource})
		if noStreams.Hits() < 2 || len(streams) == 0 || len(lists) == 0 {
			t.Fatalf("%s were not both streamed and listed: %v, %v", resource, streams, lists)
		}
		queries := streams
		for _, call := range lists {
			queries = append(queries, call.Query)
		}
		if strings.Contains(strings.Join(queries, "&")+"&", "resourceVersion=0&") {
			t.Errorf("%s were read from a cache: %q", resource, queries)
		}
	}
}

// Jobs are read before pods, so that pods are never older than the statuses that
// count them.
func TestJobsAreReadBeforePods(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	release := l.proxy.HoldWatch("jobs")
	pods, jobs := len(l.proxy.WatchQueries("pods")), len(l.proxy.WatchQueries("jobs"))
	l.executor.kill()
	l.executor = l.startExecutor(l.proxy)
	l.eventually("Jobs are asked for", func() (bool, string) { return len(l.proxy.WatchQueries("jobs")) > jobs, "" })
	time.Sleep(500 * time.Millisecond) // in which pods must not be asked for
	if n := len(l.proxy.WatchQueries("pods")) - pods; n != 0 {
		t.Error("pods were asked for while Jobs were not known yet")
	}
	release()
	l.eventually("the executor is ready", l.executor.ready)
}
