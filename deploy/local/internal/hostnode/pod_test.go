package hostnode

import (
	"context"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/deploy/local/must"
)

// ledger is a status sink and an event sink that keeps everything.
type ledger struct {
	mu        sync.Mutex
	updates   []podUpdate
	forgotten []types.UID
	events    []string
}

func (l *ledger) put(u podUpdate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.updates = append(l.updates, u)
}

func (l *ledger) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgotten = append(l.forgotten, uid)
}

func (l *ledger) note(_ *corev1.Pod, container, reason, _ string) { l.event(container, reason) }
func (l *ledger) warn(_ *corev1.Pod, container, reason, _ string) { l.event(container, reason) }

func (l *ledger) event(container, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, strings.TrimSpace(container+" "+reason))
}

func (l *ledger) latest() podUpdate {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.updates) == 0 {
		return podUpdate{status: &corev1.PodStatus{}}
	}
	return l.updates[len(l.updates)-1]
}

// phases lists the phases that were reported, without repetitions.
func (l *ledger) phases() []corev1.PodPhase {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []corev1.PodPhase
	for _, u := range l.updates {
		list = append(list, u.status.Phase)
	}
	return slices.Compact(list)
}

func (l *ledger) has(event string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.events, event)
}

// podRun is a pod with a running worker.
type podRun struct {
	*ledger
	worker *podWorker
	pod    *corev1.Pod
	done   chan struct{}
}

// startPod gives a pod a worker and lets it work until the test ends. The crash back-off is 20 ms to 40 ms.
func startPod(t *testing.T, pod *corev1.Pod) *podRun {
	t.Helper()
	return startPodWith(t, pod, newTestRunner(t))
}

func startPodWith(t *testing.T, pod *corev1.Pod, runner *runner) *podRun {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &podRun{ledger: &ledger{}, pod: pod, done: make(chan struct{})}
	deps := podDeps{
		runner: runner, statuses: r.ledger, events: r.ledger,
		backoff: crashBackoff{base: 20 * time.Millisecond, max: 40 * time.Millisecond},
		logger:  slog.New(slog.DiscardHandler),
	}
	r.worker = newPodWorker(deps, pod, time.Now())
	go func() {
		r.worker.serve(ctx)
		close(r.done)
	}()
	t.Cleanup(func() {
		cancel()
		<-r.done
	})
	return r
}

// change sends a new version of the pod.
func (r *podRun) change(edit func(*corev1.Pod)) {
	r.pod = r.pod.DeepCopy()
	edit(r.pod)
	r.worker.news.put(r.pod, false)
}

// remove marks the pod for deletion.
func (r *podRun) remove(grace int64) {
	r.change(func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.Now()), &grace
	})
}

func (r *podRun) await(t *testing.T, phase corev1.PodPhase) *corev1.PodStatus {
	t.Helper()
	eventually(t, "phase "+string(phase), func() bool { return r.latest().status.Phase == phase })
	return r.latest().status
}

func (r *podRun) log(t *testing.T, container string, attempt int32) string {
	t.Helper()
	return readAll(t, r.worker.runner.layout.log(r.pod.UID, container, attempt))
}

// awaitLog waits until the container c has written a line.
func (r *podRun) awaitLog(t *testing.T) {
	t.Helper()
	path := r.worker.runner.layout.log(r.pod.UID, "c", 0)
	eventually(t, "log of c", func() bool { _, err := os.Stat(path); return err == nil })
	waitForLog(t, path)
}

func shell(name, script string) corev1.Container {
	return corev1.Container{Name: name, Image: "image", Command: []string{"sh", "-c", script}}
}

func sidecar(name, script string) corev1.Container {
	c := shell(name, script)
	c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	return c
}

func podOf(policy corev1.RestartPolicy, containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "uid-1", Generation: 1},
		Spec: corev1.PodSpec{
			RestartPolicy: policy, Containers: containers, TerminationGracePeriodSeconds: new(int64(30)),
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

const untilTerm = `trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done`

// endsOnTerm is a script that can be awaited by its name, once it would notice a SIGTERM. Then it
// runs atEnd.
func endsOnTerm(who, atEnd string) string {
	return "trap '" + atEnd + "; exit 0' TERM; touch $JOBPOLICY_POD_DIR/up-" + who + "; while :; do sleep 0.01; done"
}

func awaits(who string) string {
	return "until [ -e $JOBPOLICY_POD_DIR/up-" + who + " ]; do sleep 0.01; done; "
}

func TestPodRunsToItsEnd(t *testing.T) {
	cases := map[string]struct {
		pod *corev1.Pod
		// wantPhases are all phases that are reported, in order.
		wantPhases []corev1.PodPhase
		want       summary
	}{
		"success": {
			podOf(never, shell("c", "sleep 0.05")),
			[]corev1.PodPhase{"Running", "Succeeded"},
			summary{Phase: "Succeeded", Main: []string{"c terminated Completed 0"}},
		},
		"failure": {
			podOf(never, shell("c", "sleep 0.05; exit 7")),
			[]corev1.PodPhase{"Running", "Failed"},
			summary{Phase: "Failed", Main: []string{"c terminated Error 7"}},
		},
		"a command that is not found": {
			podOf(never, corev1.Container{Name: "c", Command: []string{"no-such-command"}}),
			[]corev1.PodPhase{"Failed"},
			summary{Phase: "Failed", Main: []string{"c terminated StartError 128"}},
		},
		"two containers, one of which fails": {
			podOf(never, shell("a", "exit 1"), shell("b", "sleep 0.05")),
			[]corev1.PodPhase{"Running", "Failed"},
			summary{Phase: "Failed", Main: []string{"a terminated Error 1", "b terminated Completed 0"}},
		},
		"restarts until success": {
			// The container's directory is empty at every start, so the count is kept in the pod's.
			podOf(onFailure, shell("c", `f=$JOBPOLICY_POD_DIR/n; echo x >>$f; [ $(wc -l <$f) = 3 ]`)),
			[]corev1.PodPhase{"Running", "Succeeded"},
			summary{Phase: "Succeeded", Main: []string{"c terminated Completed 0, last terminated Error 1, 2 restarts"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startPod(t, tc.pod)
			got := summarize(r.await(t, corev1.PodPhase(tc.want.Phase)))
			got.NotTrue = nil
			must.Equal(t, "final status", tc.want, got)
			must.Equal(t, "phases", tc.wantPhases, r.phases())
			if r.latest().remove {
				t.Error("a pod that nobody deletes is removed")
			}
		})
	}
}

func TestInitContainersRunInOrderBeforeTheMainOnes(t *testing.T) {
	order := func(who string) string { return "echo " + who + " >>$JOBPOLICY_POD_DIR/order" }
	pod := podOf(onFailure, shell("c", "cat $JOBPOLICY_POD_DIR/order"))
	pod.Spec.InitContainers = []corev1.Container{
		shell("i", "sleep 0.05; "+order("i")),
		sidecar("s", order("s")+"; "+endsOnTerm("s", "echo bye")),
		shell("j", awaits("s")+order("j")+"; [ $(grep -c j $JOBPOLICY_POD_DIR/order) = 2 ]"),
	}
	r := startPod(t, pod)
	status := r.await(t, corev1.PodSucceeded)
	if got := r.log(t, "c", 0); got != "i\ns\nj\nj\n" {
		t.Errorf("order of starts is %q, want i first, then s and j, and j twice because it failed once", got)
	}
	if got := r.log(t, "s", 0); !strings.HasSuffix(got, "bye\n") {
		t.Errorf("log of the sidecar is %q: it was not asked to end", got)
	}
	want := []string{"i terminated Completed 0, ready", "s terminated Completed 0", "j terminated Completed 0, last terminated Error 1, 1 restarts, ready"}
	must.Equal(t, "init containers", want, summarize(status).Init)
}

func TestFailedInitContainerFailsThePodAndEndsItsSidecars(t *testing.T) {
	pod := podOf(never, shell("c", "true"))
	pod.Spec.InitContainers = []corev1.Container{sidecar("s", endsOnTerm("s", "true")), shell("i", awaits("s")+"exit 5")}
	r := startPod(t, pod)
	got := summarize(r.await(t, corev1.PodFailed))
	want := summary{
		Phase: "Failed", Init: []string{"s terminated Completed 0", "i terminated Error 5"},
		Main:    []string{"c waiting PodInitializing"},
		NotTrue: []string{"PodReadyToStartContainers ", "Initialized ContainersNotInitialized", "Ready PodFailed", "ContainersReady PodFailed"},
	}
	must.Equal(t, "final status", want, got)
}

func TestSidecarsEndOneByOneFromTheLast(t *testing.T) {
	script := func(who string) string { return endsOnTerm(who, "sleep 0.05; echo "+who+" >>$JOBPOLICY_POD_DIR/order") }
	pod := podOf(never, shell("c", awaits("s")+awaits("t")+"echo c >>$JOBPOLICY_POD_DIR/order"))
	pod.Spec.InitContainers = []corev1.Container{sidecar("s", script("s")), sidecar("t", script("t"))}
	r := startPod(t, pod)
	r.await(t, corev1.PodSucceeded)
	got, err := os.ReadFile(r.worker.runner.layout.pod(pod.UID) + "/order")
	if err != nil || string(got) != "c\nt\ns\n" {
		t.Errorf("order of ends is %q, %v; want c, t, s", got, err)
	}
}

func TestCrashLoopIsReported(t *testing.T) {
	r := startPod(t, podOf(onFailure, shell("c", "exit 3")))
	var status *corev1.PodStatus
	eventually(t, "waiting for the third restart", func() bool {
		status = r.latest().status
		return len(status.ContainerStatuses) == 1 && status.ContainerStatuses[0].RestartCount >= 2 && status.ContainerStatuses[0].State.Waiting != nil
	})
	c := status.ContainerStatuses[0]
	if status.Phase != corev1.PodRunning || c.State.Waiting.Reason != "CrashLoopBackOff" || c.LastTerminationState.Terminated.ExitCode != 3 {
		t.Errorf("status is %+v", summarize(status))
	}
	if want := "restarting failed container=c pod=p_ns(uid-1)"; !strings.Contains(c.State.Waiting.Message, want) {
		t.Errorf("message %q does not contain %q", c.State.Waiting.Message, want)
	}
	if !r.has("c BackOff") {
		t.Error("no BackOff event")
	}
}

func TestARuleRestartsAContainerOfAPodThatIsNeverRestarted(t *testing.T) {
	c := shell("c", "[ -e $JOBPOLICY_POD_DIR/ran ] && exit 7; touch $JOBPOLICY_POD_DIR/ran; exit 42")
	c.RestartPolicy = new(corev1.ContainerRestartPolicyNever)
	c.RestartPolicyRules = []corev1.ContainerRestartRule{{
		Action:    corev1.ContainerRestartRuleActionRestart,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
	}}
	status := startPod(t, podOf(never, c)).await(t, corev1.PodFailed).ContainerStatuses[0]
	if status.RestartCount != 1 || status.State.Terminated.ExitCode != 7 {
		t.Errorf("restarts %d, %s, want 1 and exit code 7", status.RestartCount, describeState(status.State))
	}
}

func TestDeletionIsGraceful(t *testing.T) {
	r := startPod(t, podOf(always, shell("c", untilTerm)))
	r.awaitLog(t)
	r.remove(30)
	status := r.await(t, corev1.PodSucceeded)
	must.Equal(t, "containers", []string{"c terminated Completed 0"}, summarize(status).Main)
	if !r.latest().remove {
		t.Error("the final status does not let go of the object")
	}
	if !r.has("c Killing") {
		t.Error("no Killing event")
	}
	r.worker.news.put(r.pod, true)
	receive(t, r.done, "end of the worker")
	if _, err := os.Stat(r.worker.runner.layout.pod(r.pod.UID)); !os.IsNotExist(err) {
		t.Errorf("the pod's directory is still there: %v", err)
	}
	must.Equal(t, "forgotten pods", []types.UID{"uid-1"}, r.forgotten)
}

// The API allows grace periods that no Duration holds.
func TestALongGracePeriodIsNotOver(t *testing.T) {
	r := startPod(t, podOf(always, shell("c", untilTerm)))
	r.awaitLog(t)
	r.remove(math.MaxInt64)
	eventually(t, "the end of the pod", func() bool { return terminal(r.latest().status.Phase) })
	must.Equal(t, "containers", []string{"c terminated Completed 0"}, summarize(r.latest().status).Main)
}

func TestDeletionEndsByForce(t *testing.T) {
	cases := map[string]struct {
		// edit changes the deleted pod before it is started.
		edit func(*corev1.Pod)
		// delete ends the pod.
		delete     func(*testing.T, *podRun)
		wantRemove bool
	}{
		"when the grace period is over":                                       {delete: func(_ *testing.T, r *podRun) { r.remove(1) }, wantRemove: true},
		"at once with a grace period of 0, and then nothing is to be removed": {delete: func(_ *testing.T, r *podRun) { r.remove(0) }},
		"when the grace period gets shorter": {
			delete: func(t *testing.T, r *podRun) {
				r.remove(3600)
				eventually(t, "the first deletion is noticed", func() bool { return r.has("c Killing") })
				r.remove(1)
			},
			wantRemove: true,
		},
		"when activeDeadlineSeconds and the pod's own grace period are over": {
			edit: func(p *corev1.Pod) {
				p.Spec.ActiveDeadlineSeconds, p.Spec.TerminationGracePeriodSeconds = new(int64(5)), new(int64(1))
			},
			delete: func(*testing.T, *podRun) {},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := podOf(never, shell("c", `trap "" TERM; echo up; while :; do sleep 0.01; done`))
			if tc.edit != nil {
				tc.edit(pod)
			}
			r := startPod(t, pod)
			r.awaitLog(t)
			tc.delete(t, r)
			c := r.await(t, corev1.PodFailed).ContainerStatuses[0].State.Terminated
			if c.ExitCode != 137 || c.Signal != 9 || c.Reason != "Error" {
				t.Errorf("container ended with %+v, want code 137 and signal 9", c)
			}
			if got := r.latest().remove; got != tc.wantRemove {
				t.Errorf("remove is %t, want %t", got, tc.wantRemove)
			}
		})
	}
}

func TestDeadlineExceeded(t *testing.T) {
	pod := podOf(never, shell("c", "sleep 1000"))
	pod.Spec.ActiveDeadlineSeconds = new(int64(5))
	r := startPod(t, pod)
	status := r.await(t, corev1.PodFailed)
	if status.Reason != "DeadlineExceeded" || status.Message != "Pod was active on the node longer than the specified deadline" {
		t.Errorf("reason %q, message %q", status.Reason, status.Message)
	}
	if got := status.ContainerStatuses[0].State.Terminated; got.ExitCode != 143 || got.Signal != 15 {
		t.Errorf("container ended with %+v, want code 143 and signal 15", got)
	}
}

func TestPodDeletedBeforeItsStartNeverRuns(t *testing.T) {
	pod := podOf(never, shell("c", "true"))
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(30))
	r := startPod(t, pod)
	status := r.await(t, corev1.PodFailed)
	if !r.latest().remove {
		t.Error("the object is not let go of")
	}
	if len(status.ContainerStatuses) > 0 || r.has("c Started") {
		t.Errorf("the container was touched: %+v", summarize(status))
	}
}

func TestUnsupportedPodIsRefused(t *testing.T) {
	r := startPod(t, podOf(always, corev1.Container{Name: "c"}, shell("d", "true")))
	status := r.await(t, corev1.PodFailed)
	if status.Reason != "UnsupportedByHostNode" || !strings.Contains(status.Message, "spec.containers[0].command") {
		t.Errorf("reason %q, message %q", status.Reason, status.Message)
	}
	if len(status.ContainerStatuses) > 0 || r.has("d Started") || !r.has("UnsupportedByHostNode") {
		t.Errorf("status %+v, events %v", summarize(status), r.events)
	}
}

func TestPhaseWrittenByAnotherStopsThePodAndStays(t *testing.T) {
	r := startPod(t, podOf(always, shell("c", untilTerm)))
	r.awaitLog(t)
	r.change(func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "NodeLost" })
	eventually(t, "the container's end is reported", func() bool {
		s := r.latest().status
		return s.Phase == corev1.PodFailed && s.ContainerStatuses[0].State.Terminated != nil
	})
	if got := r.latest().status.Reason; got != "NodeLost" {
		t.Errorf("reason is %q, want NodeLost", got)
	}
}

func TestMissingConfigMapIsWaitedFor(t *testing.T) {
	c := shell("c", "echo $V")
	c.Env = []corev1.EnvVar{{Name: "V", ValueFrom: configMapKey("cm", "k", false)}}
	objects := &lateLookup{}
	runner := newTestRunner(t)
	runner.lookup = objects
	r := startPodWith(t, podOf(never, c), runner)
	eventually(t, "a waiting container", func() bool {
		s := r.latest().status.ContainerStatuses
		return len(s) == 1 && s[0].State.Waiting != nil && s[0].State.Waiting.Reason == "CreateContainerConfigError"
	})
	objects.arrive(mapLookup{configMaps: map[string]map[string]string{"cm": {"k": "value"}}})
	r.await(t, corev1.PodSucceeded)
	if got := r.log(t, "c", 0); got != "value\n" {
		t.Errorf("log is %q, want value", got)
	}
}

// lateLookup has no objects until they arrive.
type lateLookup struct {
	mu sync.Mutex
	mapLookup
}

func (l *lateLookup) arrive(m mapLookup) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mapLookup = m
}

func (l *lateLookup) configMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mapLookup.configMap(ctx, namespace, name)
}
