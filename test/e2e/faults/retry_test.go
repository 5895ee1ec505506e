package faults

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubernetes#114516: the event of the controller's own finalizer patch reset the
// delay before a failed pod is retried; so did a restart. Neither those, nor any
// other event, nor a lost answer make the next pod come early.
func TestNothingCutsTheRetryDelayShort_114516(t *testing.T) {
	t.Parallel()
	const delay = 4 * time.Second
	cases := map[string]func(*lab, batchv1.Job){
		"own patches":        func(*lab, batchv1.Job) {},
		"events of the Job":  func(l *lab, j batchv1.Job) { l.touch(j.Name, 10) },
		"events of a pod":    func(l *lab, j batchv1.Job) { l.run(l.active(&j, 1)...) },
		"lost watches":       func(l *lab, _ batchv1.Job) { l.proxy.CutWatches("") },
		"killed, and again":  func(l *lab, _ batchv1.Job) { l.restart(); l.restart() },
		"a user's new limit": func(l *lab, j batchv1.Job) { l.patch(j.Name, `{"spec":{"parallelism":3}}`) },
	}
	for name, disturb := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "--pod-failure-backoff="+delay.String())
			job := l.create("retried", spec(3, 2))
			pods := l.active(job, 2)
			l.proxy.On(Releases, Lose, Times(1))
			l.fail(pods[0])
			l.wait("retried", "the failure is counted", func(j *batchv1.Job) bool { return j.Status.Failed == 1 })
			disturb(l, *job)
			l.eventually("the failed pod is replaced", func() (bool, string) { return len(l.pods(job)) > 2, "" })
			l.checkDelay(job, 2, delay)
		})
	}
}

// checkDelay wants each pod after the first n to be created no earlier than the
// delay after the first failure. The API keeps times in whole seconds, so up to
// one of them may seem to be missing.
func (l *lab) checkDelay(job *batchv1.Job, n int, delay time.Duration) {
	l.Helper()
	pods := l.pods(job)
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	var failed time.Time
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodFailed {
			failed = lastEnd(&pod)
		}
	}
	for _, pod := range pods[n:] {
		if waited := pod.CreationTimestamp.Sub(failed); waited < delay-time.Second {
			l.Errorf("pod %s was created %s after the failure; the delay is %s", pod.Name, waited, delay)
		}
	}
}

func lastEnd(pod *corev1.Pod) time.Time {
	var last time.Time
	for _, s := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		if s.State.Terminated != nil && s.State.Terminated.FinishedAt.After(last) {
			last = s.State.Terminated.FinishedAt.Time
		}
	}
	return last
}

// kubernetes#130881: disruptions that the pod failure policy ignores still
// delayed the next pod.
func TestIgnoredDisruptionsDelayNothing_130881(t *testing.T) {
	t.Parallel()
	l := newLab(t, "--pod-failure-backoff=10m")
	s := withLimit(spec(1, 1), 0)
	s.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action:          batchv1.PodFailurePolicyActionIgnore,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
	}}}
	job := l.create("disrupted", s)
	for range 3 {
		pod := l.active(job, 1)[0]
		l.setStatus(pod, endedStatus(corev1.PodFailed, ending{exit: 137, condition: corev1.DisruptionTarget}))
		l.eventually("the pod is released", func() (bool, string) { return !held(&l.live(pod)[0]), "" })
	}
	l.succeed(l.active(job, 1)...)
	l.ends("disrupted", batchv1.JobComplete, 1, 0)
	l.wantCreated[job.UID] = 4
}

// kubernetes#124937: the end of a pod whose sidecar ends last was taken to be
// that of its main container, so that the delay began too early.
func TestRetryDelayBeginsWhenTheSidecarHasEnded_124937(t *testing.T) {
	t.Parallel()
	const delay = 4 * time.Second
	l := newLab(t, "--pod-failure-backoff="+delay.String())
	s := spec(1, 1)
	s.Template.Spec.InitContainers = []corev1.Container{{Name: "sidecar", Image: "none", RestartPolicy: ptr(corev1.ContainerRestartPolicyAlways)}}
	job := l.create("accompanied", s)
	pod := l.active(job, 1)[0]
	now := time.Now()
	status := endedStatus(corev1.PodFailed, ending{exit: 1, at: now.Add(-time.Minute)})
	status.InitContainerStatuses = []corev1.ContainerStatus{{
		Name:  "sidecar",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(now)}},
	}}
	l.setStatus(pod, status)
	l.eventually("the failed pod is replaced", func() (bool, string) { return len(l.pods(job)) == 2, "" })
	l.checkDelay(job, 1, delay)
}
