package podcache

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func waitsFor(reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

func conditionAt(conditionType corev1.PodConditionType, status corev1.ConditionStatus, reason string, at metav1.Time) corev1.PodCondition {
	return corev1.PodCondition{Type: conditionType, Status: status, Reason: reason, LastTransitionTime: at}
}

// accepted is the status of a pod that a node prepares since second 10, and could start containers of at second 20.
func accepted(statuses ...corev1.ContainerStatus) corev1.PodStatus {
	at := since(10)
	return corev1.PodStatus{
		Phase: corev1.PodPending, StartTime: &at, ContainerStatuses: statuses,
		Conditions: []corev1.PodCondition{
			conditionAt(corev1.PodScheduled, corev1.ConditionTrue, "", since(5)),
			conditionAt(corev1.PodReadyToStartContainers, corev1.ConditionTrue, "", since(20)),
		},
	}
}

func with(status corev1.PodStatus, change func(*corev1.PodStatus)) corev1.PodStatus {
	change(&status)
	return status
}

// A startCase is the status of a pod that was created in second 1, and what it shows.
type startCase struct {
	status  corev1.PodStatus
	problem jobpolicyv1.PodStartProblem
	reason  string
	since   metav1.Time
	started bool
}

func runStarts(t *testing.T, cases map[string]startCase) {
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := From(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: since(1)}, Status: tc.status}).Start()
			want := Start{Unstarted: !tc.started, Problem: tc.problem, Reason: tc.reason}
			if tc.problem != 0 {
				want.since = tc.since.Unix()
			}
			if got != want {
				t.Errorf("start %+v, want %+v", got, want)
			}
		})
	}
}

// The messages of the kubelet are those of v1.37.
func TestWhatKeepsAPodFromStarting(t *testing.T) {
	const (
		asRoot       = `container has runAsNonRoot and image will run as root (pod: "a_ns(1)", container: main)`
		userZero     = `container's runAsUser breaks non-root policy (pod: "a_ns(1)", container: main)`
		onWindows    = `container's runAsUserName (ContainerAdministrator) which will be regarded as root identity and will break non-root policy (pod: "a", container: main)`
		noSuchConfig = `configmap "settings" not found`
	)
	init := waitsFor("PodInitializing", "")
	initRan := corev1.ContainerStatus{Name: "init", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: since(30)}}}
	runStarts(t, map[string]startCase{
		"no condition yet": {status: corev1.PodStatus{Phase: corev1.PodPending}},
		"no node": {
			status:  corev1.PodStatus{Conditions: []corev1.PodCondition{conditionAt(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", since(3))}},
			problem: unschedulable, reason: "Unschedulable", since: since(3),
		},
		"gates": {status: corev1.PodStatus{Conditions: []corev1.PodCondition{conditionAt(corev1.PodScheduled, corev1.ConditionFalse, "SchedulingGated", since(3))}}},
		"no sandbox": {
			status: with(accepted(waitsFor("ContainerCreating", "")), func(s *corev1.PodStatus) {
				s.Conditions[1] = conditionAt(corev1.PodReadyToStartContainers, corev1.ConditionFalse, "", since(11))
			}),
			problem: volumeOrSandbox, since: since(11),
		},
		"it is created": {status: accepted(waitsFor("ContainerCreating", ""))},
		"no image":      {status: accepted(waitsFor("ImagePullBackOff", "")), problem: image, reason: "ImagePullBackOff", since: since(20)},
		"no image for init": {status: with(accepted(init), func(s *corev1.PodStatus) {
			s.InitContainerStatuses = []corev1.ContainerStatus{waitsFor("ErrImagePull", "")}
		}), problem: image, reason: "ErrImagePull", since: since(20)},
		"no condition of it": {status: with(accepted(waitsFor("ErrImagePull", "")), func(s *corev1.PodStatus) { s.Conditions = s.Conditions[:1] }), problem: image, reason: "ErrImagePull", since: since(10)},
		"a key is missing":   {status: accepted(waitsFor(configError, noSuchConfig)), problem: configuration, reason: configError, since: since(20)},
		"as root":            {status: accepted(waitsFor(configError, asRoot)), problem: securityContext, reason: configError, since: since(20)},
		"as user 0":          {status: accepted(waitsFor(configError, userZero)), problem: securityContext, reason: configError, since: since(20)},
		"as root on Windows": {status: accepted(waitsFor(configError, onWindows)), problem: securityContext, reason: configError, since: since(20)},
		"another reason":     {status: accepted(waitsFor("Odd", "runAsNonRoot"))},
		"an init container has run": {
			status:  with(accepted(waitsFor("ErrImagePull", "")), func(s *corev1.PodStatus) { s.InitContainerStatuses = []corev1.ContainerStatus{initRan} }),
			started: true,
		},
		"a sidecar runs": {
			status: with(accepted(waitsFor("ErrImagePull", "")), func(s *corev1.PodStatus) {
				s.InitContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
			}),
			started: true,
		},
		"it restarts":           {status: accepted(restarted("main", 1, since(30))), started: true},
		"it runs":               {status: corev1.PodStatus{Phase: corev1.PodRunning}, started: true},
		"its node has ended it": {status: with(accepted(ends("main", 137, metav1.Time{})), func(s *corev1.PodStatus) { s.Phase = corev1.PodFailed })},
	})
}

func TestSinceWhenAPodDoesNotStart(t *testing.T) {
	unscheduled := func(at metav1.Time) corev1.PodStatus {
		return corev1.PodStatus{Conditions: []corev1.PodCondition{conditionAt(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", at)}}
	}
	prepares := func(at metav1.Time) corev1.PodStatus {
		return with(accepted(waitsFor("ContainerCreating", "")), func(s *corev1.PodStatus) {
			s.Conditions[1] = conditionAt(corev1.PodReadyToStartContainers, corev1.ConditionFalse, "", at)
		})
	}
	runStarts(t, map[string]startCase{
		"no time, on no node":    {status: unscheduled(metav1.Time{}), problem: unschedulable, reason: "Unschedulable", since: since(1)},
		"no time, on a node":     {status: prepares(metav1.Time{}), problem: volumeOrSandbox, since: since(10)},
		"before it was created":  {status: unscheduled(since(0)), problem: unschedulable, reason: "Unschedulable", since: since(1)},
		"before it was accepted": {status: prepares(since(9)), problem: volumeOrSandbox, since: since(10)},
	})
}

// A kubelet that has lost a container reports it as one that never ran, but with its ID.
func TestAPodWhoseContainerIsLostMayHaveRun(t *testing.T) {
	lost := with(accepted(ends("main", 137, metav1.Time{})), func(s *corev1.PodStatus) {
		s.Phase, s.ContainerStatuses[0].ContainerID = corev1.PodFailed, "containerd://1"
	})
	runStarts(t, map[string]startCase{"lost": {status: lost, started: true}})
}

// Every pod has another start, so pods that start without a problem must not have values of their own.
func TestStartsWithoutAProblemAreShared(t *testing.T) {
	early, late := accepted(waitsFor("ContainerCreating", "")), accepted(waitsFor("ContainerCreating", ""))
	at := metav1.NewTime(late.StartTime.Add(time.Hour))
	late.StartTime = &at
	if a, b := From(&corev1.Pod{Status: early}), From(&corev1.Pod{Status: late}); a.phase != b.phase {
		t.Error("two pods that start at other times share nothing")
	}
}

// When a node took a pod, for how long it may be active, and how long it gets to end.
func TestTimesOfAPodOnItsNode(t *testing.T) {
	type times struct {
		started         time.Time
		deadline, grace int64
		limited         bool
	}
	pod := func(status corev1.PodStatus, deadline, grace *int64) *Pod {
		return From(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: since(1)}, Status: status,
			Spec: corev1.PodSpec{ActiveDeadlineSeconds: deadline, TerminationGracePeriodSeconds: grace},
		})
	}
	early := since(-5)
	cases := map[string]struct {
		pod  *Pod
		want times
	}{
		"no node has taken it":               {pod(corev1.PodStatus{}, nil, nil), times{deadline: noDeadline}},
		"a node has":                         {pod(accepted(), new(int64(60)), new(int64(30))), times{since(10).Time, 60, 30, true}},
		"the clock of its node is late":      {pod(corev1.PodStatus{StartTime: &early}, nil, new(int64(0))), times{started: early.Time, deadline: noDeadline}},
		"no time, and less than no patience": {pod(accepted(), new(int64(0)), new(int64(-1))), times{started: since(10).Time, limited: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := times{started: tc.pod.Started(), grace: tc.pod.GracePeriod()}
			got.deadline, got.limited = tc.pod.ActiveDeadline()
			if !got.started.Equal(tc.want.started) || got.deadline != tc.want.deadline || got.grace != tc.want.grace || got.limited != tc.want.limited {
				t.Errorf("times %+v, want %+v", got, tc.want)
			}
		})
	}
}
