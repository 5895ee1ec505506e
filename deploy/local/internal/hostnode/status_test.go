package hostnode

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"jobpolicy.dev/deploy/local/must"
)

var epoch = time.Unix(1_700_000_000, 0).UTC()

// at is a time some seconds after the epoch of these tests.
func at(s int) time.Time { return epoch.Add(time.Duration(s) * time.Second) }

func aliveRun(id string, attempt int32, started int) *run {
	return &run{id: id, attempt: attempt, started: at(started)}
}

func endedRunOf(id string, attempt int32, started, finished int, code int32) *run {
	r := aliveRun(id, attempt, started)
	r.finish(ending{code: code, at: at(finished)}, "")
	return r
}

// summary is a pod status in words: what the tables of this file compare.
type summary struct {
	Phase, Reason string
	// Init and Main say of each container: name state[reason code] last[reason code] restarts flags.
	Init, Main []string
	// Conditions that are not True, and why.
	NotTrue []string
}

func summarize(s *corev1.PodStatus) summary {
	out := summary{Phase: string(s.Phase), Reason: s.Reason}
	for _, c := range s.InitContainerStatuses {
		out.Init = append(out.Init, describe(c))
	}
	for _, c := range s.ContainerStatuses {
		out.Main = append(out.Main, describe(c))
	}
	for _, c := range s.Conditions {
		if c.Status != corev1.ConditionTrue {
			out.NotTrue = append(out.NotTrue, fmt.Sprintf("%s %s", c.Type, c.Reason))
		}
	}
	return out
}

func describe(c corev1.ContainerStatus) string {
	text := c.Name + " " + describeState(c.State)
	if c.LastTerminationState.Terminated != nil {
		text += ", last " + describeState(c.LastTerminationState)
	}
	if c.RestartCount > 0 {
		text += fmt.Sprintf(", %d restarts", c.RestartCount)
	}
	if *c.Started {
		text += ", started"
	}
	if c.Ready {
		text += ", ready"
	}
	return text
}

func describeState(s corev1.ContainerState) string {
	switch {
	case s.Waiting != nil:
		return "waiting " + s.Waiting.Reason
	case s.Running != nil:
		return "running"
	}
	return fmt.Sprintf("terminated %s %d", s.Terminated.Reason, s.Terminated.ExitCode)
}

func specOf(policy corev1.RestartPolicy, init, sidecars, main []string) corev1.PodSpec {
	spec := corev1.PodSpec{RestartPolicy: policy}
	for _, name := range init {
		spec.InitContainers = append(spec.InitContainers, corev1.Container{Name: name})
	}
	for _, name := range sidecars {
		always := corev1.ContainerRestartPolicyAlways
		spec.InitContainers = append(spec.InitContainers, corev1.Container{Name: name, RestartPolicy: &always})
	}
	for _, name := range main {
		spec.Containers = append(spec.Containers, corev1.Container{Name: name})
	}
	return spec
}

const (
	never     = corev1.RestartPolicyNever
	onFailure = corev1.RestartPolicyOnFailure
	always    = corev1.RestartPolicyAlways
)

// Runs of containers that the tests of statuses share.
var (
	one        = []string{"c"}
	good       = endedRunOf("id", 0, 1, 2, 0)
	bad        = endedRunOf("id", 0, 1, 2, 1)
	alive      = aliveRun("id", 0, 1)
	backingOff = &corev1.ContainerStateWaiting{Reason: waitingCrashLoop}
)

// Conditions that are not True: of a pod that is not ready, of one whose init
// containers have not ended, and of one whose init container failed.
var (
	notReady       = []string{"Ready ContainersNotReady", "ContainersReady ContainersNotReady"}
	notInitialized = append([]string{"Initialized ContainersNotInitialized"}, notReady...)
	initFailed     = []string{"PodReadyToStartContainers ", "Initialized ContainersNotInitialized", "Ready PodFailed", "ContainersReady PodFailed"}
)

// ended are the conditions that are not True of a pod that has ended.
func ended(why string) []string {
	return []string{"PodReadyToStartContainers ", "Ready " + why, "ContainersReady " + why}
}

// A statusCase is a pod with the records of its containers, and the status that
// follows.
type statusCase struct {
	spec corev1.PodSpec
	// fill sets up the records, which are in the order of the spec, init containers first.
	fill func(c []*container)
	old  corev1.PodStatus
	over bool
	// verdict and refused are fields of facts.
	verdict *verdict
	refused bool
	want    summary
}

func checkStatuses(t *testing.T, cases map[string]statusCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: tc.spec}
			containers := newContainers(&pod.Spec, crashBackoff{})
			if tc.fill != nil {
				tc.fill(containers)
			}
			f := facts{
				pod: pod, old: &tc.old, containers: containers, refused: tc.refused, over: tc.over,
				verdict: tc.verdict, since: at(0), now: at(5),
			}
			must.Equal(t, "status", tc.want, summarize(f.status()))
		})
	}
}

func TestStatusBeforeTheContainersRun(t *testing.T) {
	checkStatuses(t, map[string]statusCase{
		"nothing has started": {
			spec: specOf(never, nil, nil, one),
			want: summary{Phase: "Pending", Main: []string{"c waiting ContainerCreating"}, NotTrue: notReady},
		},
		"nothing has started and there is an init container": {
			spec: specOf(never, []string{"i"}, nil, one),
			want: summary{
				Phase: "Pending", Init: []string{"i waiting PodInitializing"}, Main: []string{"c waiting PodInitializing"},
				NotTrue: notInitialized,
			},
		},
		"an init container runs": {
			spec: specOf(never, []string{"i"}, nil, one),
			fill: func(c []*container) { c[0].current = alive },
			want: summary{
				Phase: "Pending", Init: []string{"i running, started"}, Main: []string{"c waiting PodInitializing"},
				NotTrue: notInitialized,
			},
		},
		"init containers are done and the main one has not started": {
			spec: specOf(never, []string{"i"}, nil, one),
			fill: func(c []*container) { c[0].current = good },
			want: summary{
				Phase: "Pending", Init: []string{"i terminated Completed 0, ready"}, Main: []string{"c waiting PodInitializing"},
				NotTrue: notReady,
			},
		},
		"an init container failed for good": {
			spec: specOf(never, []string{"i", "j"}, nil, one),
			fill: func(c []*container) { c[0].current = bad },
			over: true,
			want: summary{
				Phase: "Failed", Init: []string{"i terminated Error 1", "j waiting PodInitializing"},
				Main:    []string{"c waiting PodInitializing"},
				NotTrue: initFailed,
			},
		},
		"an init container failed and waits for its restart": {
			spec: specOf(onFailure, []string{"i"}, nil, one),
			fill: func(c []*container) { c[0].current, c[0].waiting = bad, backingOff },
			want: summary{
				Phase: "Pending", Init: []string{"i waiting CrashLoopBackOff, last terminated Error 1"},
				Main:    []string{"c waiting PodInitializing"},
				NotTrue: notInitialized,
			},
		},
	})
}

func TestStatusOfContainers(t *testing.T) {
	checkStatuses(t, map[string]statusCase{
		"the container runs": {
			spec: specOf(never, nil, nil, one),
			fill: func(c []*container) { c[0].current = alive },
			want: summary{Phase: "Running", Main: []string{"c running, started, ready"}},
		},
		"one of two containers has ended well": {
			spec: specOf(never, nil, nil, []string{"b", "a"}),
			fill: func(c []*container) { c[0].current, c[1].current = alive, good },
			want: summary{
				Phase: "Running", Main: []string{"a terminated Completed 0", "b running, started, ready"}, NotTrue: notReady,
			},
		},
		"all containers have ended well": {
			spec: specOf(never, nil, nil, []string{"a", "b"}),
			fill: func(c []*container) { c[0].current, c[1].current = good, good },
			over: true,
			want: summary{
				Phase: "Succeeded", Main: []string{"a terminated Completed 0", "b terminated Completed 0"}, NotTrue: ended("PodCompleted"),
			},
		},
		"one of two containers has failed for good": {
			spec: specOf(never, nil, nil, []string{"a", "b"}),
			fill: func(c []*container) { c[0].current, c[1].current = good, bad },
			over: true,
			want: summary{
				Phase: "Failed", Main: []string{"a terminated Completed 0", "b terminated Error 1"}, NotTrue: ended("PodFailed"),
			},
		},
		"a failed container waits for its restart": {
			spec: specOf(onFailure, nil, nil, one),
			fill: func(c []*container) { c[0].current, c[0].waiting = bad, backingOff },
			want: summary{Phase: "Running", Main: []string{"c waiting CrashLoopBackOff, last terminated Error 1"}, NotTrue: notReady},
		},
		"a container that ended well waits for its restart under Always": {
			spec: specOf(always, nil, nil, one),
			fill: func(c []*container) { c[0].current, c[0].waiting = good, backingOff },
			want: summary{Phase: "Running", Main: []string{"c waiting CrashLoopBackOff, last terminated Completed 0"}, NotTrue: notReady},
		},
		"a restarted container runs": {
			spec: specOf(onFailure, nil, nil, one),
			fill: func(c []*container) { c[0].previous, c[0].current, c[0].restarts = bad, alive, 1 },
			want: summary{Phase: "Running", Main: []string{"c running, last terminated Error 1, 1 restarts, started, ready"}},
		},
		"a container's own policy goes before the pod's": {
			spec: func() corev1.PodSpec {
				s := specOf(always, nil, nil, one)
				s.Containers[0].RestartPolicy = new(corev1.ContainerRestartPolicyNever)
				return s
			}(),
			fill: func(c []*container) { c[0].current = bad },
			over: true,
			want: summary{Phase: "Failed", Main: []string{"c terminated Error 1"}, NotTrue: ended("PodFailed")},
		},
	})
}

func TestStatusWithSidecars(t *testing.T) {
	checkStatuses(t, map[string]statusCase{
		"the main container is done but a sidecar runs": {
			spec: specOf(never, nil, []string{"s"}, one),
			fill: func(c []*container) { c[0].current, c[1].current = alive, good },
			want: summary{
				Phase: "Running", Init: []string{"s running, started, ready"}, Main: []string{"c terminated Completed 0"}, NotTrue: notReady,
			},
		},
		"a sidecar's failure does not count": {
			spec: specOf(never, nil, []string{"s"}, one),
			fill: func(c []*container) { c[0].current, c[1].current = bad, good },
			over: true,
			want: summary{
				Phase: "Succeeded", Init: []string{"s terminated Error 1"}, Main: []string{"c terminated Completed 0"}, NotTrue: ended("PodCompleted"),
			},
		},
		"a pod does not become terminal while a process runs": {
			spec: specOf(never, []string{"i"}, []string{"s"}, one),
			fill: func(c []*container) { c[0].current, c[1].current = bad, alive },
			old:  corev1.PodStatus{Phase: corev1.PodPending},
			want: summary{
				Phase: "Pending", Init: []string{"i terminated Error 1", "s running, started, ready"}, Main: []string{"c waiting PodInitializing"},
				NotTrue: notInitialized,
			},
		},
	})
}

func TestStatusOfStoppedPods(t *testing.T) {
	checkStatuses(t, map[string]statusCase{
		"stopped under Always with exit code 0": {
			spec: specOf(always, nil, nil, one),
			fill: func(c []*container) { c[0].current = good },
			over: true,
			want: summary{Phase: "Succeeded", Main: []string{"c terminated Completed 0"}, NotTrue: ended("PodCompleted")},
		},
		"stopped before its container could start": {
			spec: specOf(never, nil, nil, one),
			fill: func(c []*container) { c[0].waiting = &corev1.ContainerStateWaiting{Reason: waitingConfigError} },
			over: true,
			want: summary{Phase: "Failed", Main: []string{"c terminated ContainerStatusUnknown 137"}, NotTrue: ended("PodFailed")},
		},
		"stopped while it was initialized": {
			spec: specOf(never, []string{"i", "j", "k"}, nil, one),
			fill: func(c []*container) { c[0].current, c[1].current = good, endedRunOf("id", 0, 1, 2, 143) },
			over: true,
			want: summary{
				Phase: "Failed", Init: []string{"i terminated Completed 0, ready", "j terminated Error 143", "k waiting PodInitializing"},
				Main:    []string{"c waiting PodInitializing"},
				NotTrue: initFailed,
			},
		},
		"a deadline has the last word over exit codes": {
			spec:    specOf(never, nil, nil, one),
			fill:    func(c []*container) { c[0].current = good },
			over:    true,
			verdict: deadlineVerdict,
			want:    summary{Phase: "Failed", Reason: "DeadlineExceeded", Main: []string{"c terminated Completed 0"}, NotTrue: ended("PodFailed")},
		},
		"a deadline shows only when the processes are gone": {
			spec:    specOf(never, nil, nil, one),
			fill:    func(c []*container) { c[0].current = alive },
			verdict: deadlineVerdict,
			want:    summary{Phase: "Running", Main: []string{"c running, started, ready"}},
		},
		"a refused pod shows no containers": {
			spec:    specOf(never, nil, nil, one),
			over:    true,
			refused: true,
			verdict: &verdict{reasonUnsupported, "m"},
			want:    summary{Phase: "Failed", Reason: "UnsupportedByHostNode", NotTrue: ended("PodFailed")},
		},
		"a terminal phase never changes": {
			spec: specOf(never, nil, nil, one),
			fill: func(c []*container) { c[0].current = good },
			old:  corev1.PodStatus{Phase: corev1.PodFailed, Reason: "NodeLost"},
			over: true,
			want: summary{Phase: "Failed", Reason: "NodeLost", Main: []string{"c terminated Completed 0"}, NotTrue: ended("PodFailed")},
		},
	})
}

func TestStatusInFull(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Generation: 4}, Spec: specOf(onFailure, nil, nil, []string{"c"})}
	pod.Spec.Containers[0].Image = "perl:5"
	containers := newContainers(&pod.Spec, crashBackoff{})
	containers[0].previous = &run{id: "hostprocess://1", started: at(1)}
	containers[0].previous.finish(ending{code: 143, signal: 15, at: at(2)}, "tail of the log")
	containers[0].current, containers[0].restarts = aliveRun("hostprocess://2", 1, 3), 1
	old := corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: *seconds(at(1))},
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: *seconds(at(1))},
	}}
	got := facts{pod: pod, old: &old, containers: containers, since: at(0).Add(time.Millisecond), now: at(3)}.status()

	condition := func(kind corev1.PodConditionType, since int) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, ObservedGeneration: 4, LastTransitionTime: *seconds(at(since))}
	}
	want := &corev1.PodStatus{
		ObservedGeneration: 4,
		Phase:              corev1.PodRunning,
		Conditions: []corev1.PodCondition{
			condition(corev1.PodReadyToStartContainers, 3),
			condition(corev1.PodInitialized, 1),
			condition(corev1.PodReady, 3),
			condition(corev1.ContainersReady, 3),
			condition(corev1.PodScheduled, 3),
		},
		HostIP: "127.0.0.1", HostIPs: []corev1.HostIP{{IP: "127.0.0.1"}},
		PodIP: "127.0.0.1", PodIPs: []corev1.PodIP{{IP: "127.0.0.1"}},
		StartTime: seconds(at(0)),
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "c", Image: "perl:5", ImageID: imageID, ContainerID: "hostprocess://2",
			Ready: true, Started: new(true), RestartCount: 1,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *seconds(at(3))}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 143, Signal: 15, Reason: "Error", Message: "tail of the log",
				StartedAt: *seconds(at(1)), FinishedAt: *seconds(at(2)), ContainerID: "hostprocess://1",
			}},
		}},
	}
	must.Equal(t, "status", want, got)
}

func TestReadinessGatesHoldPodReadyBack(t *testing.T) {
	cases := map[string]struct {
		conditions []corev1.PodCondition
		want       corev1.ConditionStatus
	}{
		"the gate's condition is absent": {nil, corev1.ConditionFalse},
		"the gate is closed":             {[]corev1.PodCondition{{Type: "x.dev/gate", Status: corev1.ConditionFalse}}, corev1.ConditionFalse},
		"the gate is open":               {[]corev1.PodCondition{{Type: "x.dev/gate", Status: corev1.ConditionTrue}}, corev1.ConditionTrue},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: specOf(never, nil, nil, []string{"c"}), Status: corev1.PodStatus{Conditions: tc.conditions}}
			pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "x.dev/gate"}}
			containers := newContainers(&pod.Spec, crashBackoff{})
			containers[0].current = aliveRun("id", 0, 1)
			s := facts{pod: pod, old: &pod.Status, containers: containers, now: at(2)}.status()
			if got := podCondition(t, s, corev1.PodReady).Status; got != tc.want {
				t.Errorf("Ready is %s, want %s", got, tc.want)
			}
			if got := podCondition(t, s, corev1.ContainersReady).Status; got != corev1.ConditionTrue {
				t.Errorf("ContainersReady is %s, want True", got)
			}
		})
	}
}

func TestRestoreFromStatus(t *testing.T) {
	exited := func(code int32) corev1.ContainerState {
		reason := "Error"
		if code == 0 {
			reason = "Completed"
		}
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: reason, StartedAt: *seconds(at(1)), FinishedAt: *seconds(at(2)),
		}}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *seconds(at(1))}}
	waiting := func(why string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: why}}
	}
	cases := map[string]struct {
		status corev1.ContainerStatus
		// want describes the container's status as the node would give it again before it does anything.
		want        string
		wantAttempt int32
	}{
		"never started":           {corev1.ContainerStatus{State: waiting("ContainerCreating")}, "c waiting ContainerCreating", 0},
		"ran when the node died":  {corev1.ContainerStatus{State: running}, "c terminated ContainerStatusUnknown 137", 1},
		"ran for the second time": {corev1.ContainerStatus{State: running, LastTerminationState: exited(1), RestartCount: 1}, "c terminated ContainerStatusUnknown 137, last terminated Error 1, 1 restarts", 2},
		"had ended":               {corev1.ContainerStatus{State: exited(0)}, "c terminated Completed 0", 1},
		"waited for its restart":  {corev1.ContainerStatus{State: waiting("CrashLoopBackOff"), LastTerminationState: exited(3), RestartCount: 2}, "c terminated Error 3, 2 restarts", 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := specOf(onFailure, nil, nil, []string{"c"})
			containers := newContainers(&spec, crashBackoff{})
			tc.status.Name = "c"
			restore(containers, &corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{tc.status}}, at(9))
			if got := describe(containers[0].status(waitingCreating)); got != tc.want {
				t.Errorf("restored as %q, want %q", got, tc.want)
			}
			if got := containers[0].nextAttempt(); got != tc.wantAttempt {
				t.Errorf("next attempt is %d, want %d", got, tc.wantAttempt)
			}
		})
	}
}

func podCondition(t *testing.T, s *corev1.PodStatus, kind corev1.PodConditionType) *corev1.PodCondition {
	t.Helper()
	_, c := podutil.GetPodCondition(s, kind)
	if c == nil {
		t.Fatalf("no condition %s", kind)
	}
	return c
}
