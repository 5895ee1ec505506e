package world

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func relabels(tp *tape, uid types.UID) {
	var labels map[string]string
	tp.edit("webhook", uid, func(pod *corev1.Pod) { labels, pod.Labels = pod.Labels, nil })
	tp.edit("webhook", uid, func(pod *corev1.Pod) { pod.Labels = labels })
}

// flip lets a pod that failed say that it succeeded.
func flip(tp *tape, uid types.UID) {
	tp.edit(kubelet, uid, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded })
}

// manyPods gives a Job nine completions, three at a time.
func manyPods(job *batchv1.Job) {
	job.Spec.Completions, job.Spec.Parallelism = new(int32(9)), new(int32(3))
}

// Only facts that an executor cannot know excuse a pod that comes too early (I12). Another
// active executor is no excuse, nor is anything that happened to another pod.
func TestDelayExcuses(t *testing.T) {
	early := []string{"I12"}
	runStreams(t, map[string]streamCase{
		"another executor is active, and it has recorded the failure itself": {want: early, play: func(tp *tape) {
			starts(tp, manyPods)
			again(tp, executorB, "b-0")
			fails(tp, "a-0")
			again(tp, executorA, "a-2")
		}},
		"another executor is active, and its pod failed": {play: func(tp *tape) {
			tp.job("a", manyPods)
			again(tp, executorA, "a-0")
			again(tp, executorB, "b-0")
			tp.ends("b-0", 1)
			again(tp, executorA, "a-1")
		}},
		"the Job has lost the pod since": {want: early, play: running(func(tp *tape) {
			fails(tp, "a-0")
			tp.edit("webhook", "a-0", loose)
			again(tp, executorA, "a-2")
		})},
		"the Job has lost the pod since, and podjob does not know it any more": {play: running(func(tp *tape) {
			tp.judge.podjob = true
			fails(tp, "a-0")
			tp.edit("webhook", "a-0", loose)
			again(tp, executorA, "a-2")
		})},
		"another pod said two things of its end": {want: early, play: running(func(tp *tape) {
			tp.ends("a-1", 1)
			flip(tp, "a-1")
			tp.wait(2 * time.Minute)
			fails(tp, "a-0")
			again(tp, executorA, "a-2")
		})},
		"the pod said two things of its end": {play: running(func(tp *tape) {
			fails(tp, "a-0")
			flip(tp, "a-0")
			again(tp, executorA, "a-2")
		})},
		"the pod was a stray long before it failed": {want: early, play: running(func(tp *tape) {
			relabels(tp, "a-0")
			tp.wait(time.Hour)
			fails(tp, "a-0")
			again(tp, executorA, "a-2")
		})},
		"the pod was made a stray when it had failed, and a new executor begins": {play: running(func(tp *tape) {
			tp.ends("a-0", 1)
			tp.edit("webhook", "a-0", func(pod *corev1.Pod) { pod.Labels = nil })
			tp.wait(time.Second)
			again(tp, executorB, "b-0")
		})},
	})
}

// A list shows ends in any order. Of the ends that an executor need not have seen, it may have
// seen any. If it creates a pod for which the Job has room only after one more end, it has seen
// one more.
func TestDelayAfterHalfAList(t *testing.T) {
	creates := func(names ...string) func(*tape) {
		return func(tp *tape) {
			tp.job("a", manyPods)
			for _, name := range []string{"a-0", "a-1", "a-2"} {
				tp.pod(executorA, "job-a", name, noIndex)
			}
			for _, name := range []types.UID{"a-0", "a-1"} {
				tp.ends(name, 1)
				tp.wait(time.Second)
			}
			tp.ends("a-2", 137, disrupts)
			tp.wait(12 * time.Second)
			for _, name := range names {
				tp.pod(executorA, "job-a", name, noIndex)
			}
		}
	}
	runStreams(t, map[string]streamCase{
		"the last end and one failure": {play: creates("a-3", "a-4")},
		"all of them":                  {want: []string{"I12"}, play: creates("a-3", "a-4", "a-5")},
	})
}

// A success ends the row of failures only if the executor can know of it (I12).
func TestDelayExcusesBySuccesses(t *testing.T) {
	early := []string{"I12"}
	runStreams(t, map[string]streamCase{
		"a pod succeeded without finalizer, and it saw that pod run": {want: early, play: running(func(tp *tape) {
			tp.release(user, "a-1")
			fails(tp, "a-0")
			tp.wait(2 * time.Minute)
			again(tp, executorA, "a-2")
			fails(tp, "a-2")
			tp.wait(time.Second)
			tp.ends("a-1", 0)
			again(tp, executorA, "a-3")
		})},
		"a pod succeeded without finalizer, and a new executor finds it so": {play: running(func(tp *tape) {
			tp.release(user, "a-1")
			fails(tp, "a-0")
			tp.wait(time.Second)
			tp.ends("a-1", 0)
			tp.wait(time.Second)
			again(tp, executorB, "b-0")
		})},
		// Nothing in the cluster tells which of them was first: the success ends the row,
		// as upstream has it of pods that it finds at once.
		"another pod succeeded in the same second": {play: func(tp *tape) {
			starts(tp, manyPods)
			tp.ends("a-1", 0)
			fails(tp, "a-0")
			again(tp, executorA, "a-2")
		}},
		"a success is gone that the executor has found": {play: func(tp *tape) {
			starts(tp, manyPods)
			fails(tp, "a-0")
			tp.ends("a-1", 0)
			tp.wait(time.Second)
			again(tp, executorB, "b-0")
			tp.removes(user, "pods", "a-1")
			again(tp, executorB, "b-1")
		}},
		"a success was gone before the executor began": {want: early, play: func(tp *tape) {
			starts(tp, manyPods)
			fails(tp, "a-0")
			tp.ends("a-1", 0)
			tp.removes(user, "pods", "a-1")
			tp.wait(time.Second)
			again(tp, executorB, "b-0")
		}},
		"a success of an index that was asked for then": {play: func(tp *tape) {
			tp.job("a", indexedJob(2))
			tp.pod(executorA, "job-a", "a-0", 0)
			tp.pod(executorA, "job-a", "a-1", 1)
			fails(tp, "a-0")
			tp.ends("a-1", 0)
			tp.spec(sized(1, 1))
			tp.wait(time.Second)
			tp.pod(executorA, "job-a", "a-2", 0)
		}},
	})
}

// Two executors that are active at once need not know what the other one did a moment
// ago. They know what they did themselves.
func TestTwoExecutors(t *testing.T) {
	completes := func(tp *tape, by string) {
		tp.status(by, "job-a", func(s *batchv1.JobStatus) { s.CompletedIndexes, s.Succeeded = "0", 1 })
	}
	runStreams(t, map[string]streamCase{
		"one too many of its own": {want: []string{"I6"}, play: func(tp *tape) {
			tp.job("a")
			tp.pod(executorB, "job-a", "b-0", noIndex)
			startsPods(tp)
			tp.pod(executorA, "job-a", "a-2", noIndex)
		}},
		"an index that the other one completed": {play: func(tp *tape) {
			tp.job("a", indexedJob(2))
			tp.pod(executorA, "job-a", "a-0", 1)
			tp.pod(executorB, "job-a", "b-0", 0)
			tp.ends("b-0", 0)
			completes(tp, executorB)
			tp.pod(executorA, "job-a", "a-1", 0)
		}},
		"an index that it completed itself": {want: []string{"I6"}, play: func(tp *tape) {
			tp.job("a", indexedJob(3))
			tp.pod(executorB, "job-a", "b-0", 1)
			tp.pod(executorA, "job-a", "a-0", 0)
			tp.ends("a-0", 0)
			completes(tp, executorA)
			tp.pod(executorA, "job-a", "a-1", 0)
		}},
	})
}

// While nothing has failed for some time, views are seldom late.
func TestCalmViews(t *testing.T) {
	creates := func(tp *tape, wait time.Duration) {
		tp.judge.calmLag = 10 * time.Second
		tp.job("a")
		tp.spec(suspend)
		tp.wait(wait)
		tp.pod(executorA, "job-a", "a-0", noIndex)
	}
	runStreams(t, map[string]streamCase{
		"a pod for a Job suspended seconds ago": {play: func(tp *tape) { creates(tp, 5*time.Second) }},
		"a pod for a Job suspended a while ago": {want: []string{"I6"}, play: func(tp *tape) { creates(tp, 15*time.Second) }},
		"a pod for a Job suspended a while ago, after a fault": {play: func(tp *tape) {
			tp.judge.disturbed(tp.now)
			creates(tp, 15*time.Second)
		}},
	})
}

// While lists fail, an executor acts on what it knew before.
func TestViewsWhileListsFail(t *testing.T) {
	long := fault{kind: serverError, to: 15 * time.Minute, percent: 100}
	for name, c := range map[string]struct {
		change func(*fault)
		want   time.Duration
	}{
		"all requests":   {func(*fault) {}, defaultLag + 15*time.Minute},
		"reads":          {func(f *fault) { f.verb = "GET" }, defaultLag + 15*time.Minute},
		"writes":         {func(f *fault) { f.verb = "PUT" }, defaultLag},
		"few requests":   {func(f *fault) { f.percent = 30 }, defaultLag},
		"for a minute":   {func(f *fault) { f.to = time.Minute }, defaultLag},
		"two minutes":    {func(f *fault) { f.to = 2 * time.Minute }, defaultLag + 2*time.Minute},
		"writes refused": {func(f *fault) { f.kind = conflict }, defaultLag},
	} {
		f := long
		c.change(&f)
		if got := (&plan{faults: []*fault{&f}}).lag(); got != c.want {
			t.Errorf("%s: views may be %s old, want %s", name, got, c.want)
		}
	}
}

// Without leader election, an executor that stood still acts on an old view. With leader
// election its lease has run out, and the executor must not act at all.
func TestViewsAfterAStandstill(t *testing.T) {
	plans := map[string]struct {
		executors executorPlan
		want      time.Duration
	}{
		"two active executors":    {executorPlan{replicas: 2, together: true}, defaultLag + 4*time.Minute},
		"two executors, a leader": {executorPlan{replicas: 2}, defaultLag},
	}
	for name, c := range plans {
		for _, verb := range []string{"freeze", "hang for it"} {
			p := &plan{executor: c.executors, steps: []*step{{verb: verb, d: 4 * time.Minute}, {verb: "kill", d: time.Hour}}}
			if got := p.lag(); got != c.want {
				t.Errorf("%s, %s: views may be %s old, want %s", name, verb, got, c.want)
			}
		}
	}
}
