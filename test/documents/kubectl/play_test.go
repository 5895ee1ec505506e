package kubectl

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	_ "k8s.io/kubernetes/pkg/kubelet" // has getPhase
	"sigs.k8s.io/yaml"

	"jobpolicy.dev/deploy/local/must"
)

// getPhase is the kubelet's own function.
//
//go:linkname getPhase k8s.io/kubernetes/pkg/kubelet.getPhase
func getPhase(logger klog.Logger, pod *corev1.Pod, info []corev1.ContainerStatus, podIsTerminal, podHasInitialized bool) corev1.PodPhase

// A podCase is a pod, and how the runs of its containers end; the last run stands for all
// further ones.
type podCase struct {
	spec corev1.PodSpec
	runs map[string][]containerRun
}

// A containerRun ends with a code after a time.
type containerRun struct {
	code int
	time time.Duration
}

// A podEnd is how a pod ended, or that it did not within the span of a play.
type podEnd struct {
	Outcome      string  `json:"outcome"`
	EndedSeconds float64 `json:"endedSeconds"`
	ExitCode     int     `json:"exitCode"`
	Restarts     int     `json:"restarts"`
	// overdue: by the pod's own deadline.
	overdue bool
}

// Containers do not start in whole seconds, so that none ends just when a deadline does.
const (
	playSpan   = time.Hour
	startDelay = 1005 * time.Millisecond
	stopDelay  = time.Second
)

// Pods of a play end when, and as, they do by the kubelet's own functions.
func TestPlaysAgreeWithTheKubelet(t *testing.T) {
	dir := buildPlugin(t)
	seen := map[string]int{}
	for seed := range uint64(200) {
		c := drawPod(rand.New(rand.NewPCG(seed, 0)))
		want := endByTheKubelet(&c)
		seen[want.Outcome]++
		got, command := c.play(t, dir)
		switch {
		case want.Outcome == "":
			want.Restarts, got.Restarts = 0, 0 // The play stops before.
		case want.overdue:
			seen["overdue"]++
			want.overdue, want.ExitCode, got.ExitCode = false, 0, 0
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(podEnd{})); diff != "" {
			text, _ := yaml.Marshal(c.spec)
			t.Errorf("seed %d: -kubelet +play\n%s\n%s\n%s", seed, diff, command, text)
		}
	}
	if seen["succeeded"] < 20 || seen["failed"] < 20 || seen[""] < 20 || seen["overdue"] < 10 {
		t.Errorf("too few pods of a kind: %v", seen)
	}
}

func drawPod(r *rand.Rand) podCase {
	c := podCase{runs: map[string][]containerRun{}}
	c.spec.RestartPolicy = []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}[r.IntN(2)]
	if r.IntN(4) == 0 {
		c.spec.ActiveDeadlineSeconds = new(int64(2 + r.IntN(20)))
	}
	for i := range r.IntN(3) {
		c.spec.InitContainers = append(c.spec.InitContainers, c.drawContainer(r, fmt.Sprint("i", i), true))
	}
	for i := range 1 + r.IntN(3) {
		c.spec.Containers = append(c.spec.Containers, c.drawContainer(r, fmt.Sprint("m", i), false))
	}
	return c
}

func (c *podCase) drawContainer(r *rand.Rand, name string, init bool) corev1.Container {
	container := corev1.Container{Name: name, Image: "any"}
	if r.IntN(2) == 0 {
		policies := []corev1.ContainerRestartPolicy{
			corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure, corev1.ContainerRestartPolicyAlways,
		}
		container.RestartPolicy = new(policies[r.IntN(3)])
		sidecar := init && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
		for range r.IntN(3) {
			if sidecar {
				break
			}
			container.RestartPolicyRules = append(container.RestartPolicyRules, corev1.ContainerRestartRule{
				Action: corev1.ContainerRestartRuleActionRestart,
				ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
					Operator: []corev1.ContainerRestartRuleOnExitCodesOperator{corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn}[r.IntN(2)],
					Values:   []int32{int32(r.IntN(3)), int32(r.IntN(3))},
				},
			})
		}
	}
	for range 1 + r.IntN(4) {
		run := containerRun{max(0, r.IntN(5)-2), time.Duration(1+r.IntN(5)) * time.Second}
		if init {
			run.time += 10 * time.Millisecond // A sidecar does not end when the others do: both orders would be right.
		}
		c.runs[name] = append(c.runs[name], run)
	}
	return container
}

// play plays the pod, and returns the command, too.
func (c *podCase) play(t *testing.T, dir string) (podEnd, string) {
	t.Helper()
	job := batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec: batchv1.JobSpec{BackoffLimit: new(int32(1_000_000)), Template: corev1.PodTemplateSpec{Spec: c.spec}},
	}
	data, err := yaml.Marshal(job)
	must.Succeed(t, err)
	file := filepath.Join(t.TempDir(), "job.yaml")
	must.Succeed(t, os.WriteFile(file, data, 0o600))
	args := []string{"simulate", "-o", "json", "--span", playSpan.String(), "--start-delay", startDelay.String(), "--stop-delay", stopDelay.String(), "-f", file}
	for name, runs := range c.runs {
		var outcomes []string
		for _, run := range runs {
			outcome := "succeed"
			if run.code != 0 {
				outcome = fmt.Sprintf("fail(%d)", run.code)
			}
			outcomes = append(outcomes, fmt.Sprintf("%s@%s", outcome, run.time))
		}
		if !slices.ContainsFunc(c.all(), func(x *corev1.Container) bool { return x.Name == name && restartable(x, &c.spec) }) {
			outcomes = outcomes[:1]
		}
		args = append(args, "--pod", "0/"+name+":"+strings.Join(outcomes, ","))
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "kubectl-jobpolicy"), args...).Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	var report struct {
		Pods []podEnd `json:"pods"`
	}
	if err := json.Unmarshal(out, &report); err != nil || len(report.Pods) == 0 {
		t.Fatalf("error %v, answer %s", err, out)
	}
	return report.Pods[0], strings.Join(args, " ")
}

func restartable(c *corev1.Container, spec *corev1.PodSpec) bool {
	return len(c.RestartPolicyRules) > 0 || podutil.ContainerShouldRestart(*c, *spec, 1)
}

func (c *podCase) all() []*corev1.Container {
	var list []*corev1.Container
	for i := range c.spec.InitContainers {
		list = append(list, &c.spec.InitContainers[i])
	}
	for i := range c.spec.Containers {
		list = append(list, &c.spec.Containers[i])
	}
	return list
}

// A nodePod is a pod on a node. Whether a container is restarted and
// which phase the pod has is upstream's word.
type nodePod struct {
	*podCase
	pod      corev1.Pod
	statuses []corev1.ContainerStatus
	runsMade map[string]int
	// due is when a running container ends, or one that ended starts again.
	due map[string]time.Duration
	// delay is that of the last restart.
	delay map[string]time.Duration
}

func endByTheKubelet(c *podCase) podEnd {
	n := &nodePod{podCase: c, pod: corev1.Pod{Spec: c.spec}, runsMade: map[string]int{}, due: map[string]time.Duration{}, delay: map[string]time.Duration{}}
	for _, x := range c.all() {
		n.statuses = append(n.statuses, corev1.ContainerStatus{Name: x.Name, State: waits})
	}
	deadline := 2 * playSpan
	if s := c.spec.ActiveDeadlineSeconds; s != nil {
		deadline = time.Duration(*s) * time.Second
		n.due[""] = deadline
	}
	for now := startDelay; now <= playSpan; now = n.next(now) {
		for now < deadline && n.act(now) {
		}
		phase := getPhase(klog.Background(), &n.pod, n.withoutSidecars(), false, n.initialized())
		if now < deadline && phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			continue
		}
		end := podEnd{Outcome: strings.ToLower(string(phase)), ExitCode: n.firstFailure()}
		ended := now
		for i := range n.statuses {
			end.Restarts += int(n.statuses[i].RestartCount)
			if n.statuses[i].State.Running != nil {
				ended = now + stopDelay
			}
		}
		end.EndedSeconds = ended.Seconds()
		if ended >= deadline {
			end.Outcome, end.overdue = "failed", true // activeDeadlineHandler
		}
		return end
	}
	return podEnd{}
}

var waits = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}

// act does what is due, and reports whether it did anything.
func (n *nodePod) act(now time.Duration) bool {
	for i, x := range n.all() {
		s := &n.statuses[i]
		ended := s.State.Terminated
		switch {
		case s.State.Running != nil && n.due[x.Name] <= now:
			n.end(x, s, now)
			return true
		case s.State.Running == nil && ended == nil && n.mayStart(i):
			n.start(x, s, now)
			return true
		case ended != nil && n.restarts(x, ended.ExitCode) && n.due[x.Name] <= now:
			s.RestartCount++
			s.LastTerminationState = s.State
			n.start(x, s, now)
			return true
		}
	}
	return false
}

// next is when something is due again.
func (n *nodePod) next(now time.Duration) time.Duration {
	next := playSpan + 1
	for _, at := range n.due {
		if at > now {
			next = min(next, at)
		}
	}
	return next
}

func (n *nodePod) start(x *corev1.Container, s *corev1.ContainerStatus, now time.Duration) {
	runs := n.runs[x.Name]
	run := runs[min(n.runsMade[x.Name], len(runs)-1)]
	n.runsMade[x.Name]++
	n.due[x.Name] = now + run.time
	s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	s.Started = new(true)
}

// end ends a run. The delays before restarts are 0, 10, 20 … 300 seconds.
func (n *nodePod) end(x *corev1.Container, s *corev1.ContainerStatus, now time.Duration) {
	runs := n.runs[x.Name]
	run := runs[min(n.runsMade[x.Name]-1, len(runs)-1)]
	s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(run.code)}}
	delay := time.Duration(0)
	if s.RestartCount > 0 {
		delay = min(max(10*time.Second, 2*n.delay[x.Name]), 5*time.Minute)
	}
	n.delay[x.Name], n.due[x.Name] = delay, now+delay
}

func (n *nodePod) isInit(x *corev1.Container) bool {
	return slices.ContainsFunc(n.spec.InitContainers, func(c corev1.Container) bool { return c.Name == x.Name })
}

func (n *nodePod) isSidecar(x *corev1.Container) bool {
	return n.isInit(x) && podutil.IsRestartableInitContainer(x)
}

func (n *nodePod) restarts(x *corev1.Container, code int32) bool {
	if n.isInit(x) && !n.isSidecar(x) && code == 0 {
		return false // computeInitContainerActions
	}
	return podutil.ContainerShouldRestart(*x, n.spec, code)
}

// mayStart says whether the init containers before a container are done, or are sidecars
// that run.
func (n *nodePod) mayStart(i int) bool {
	for k, x := range n.all()[:i] {
		s := n.statuses[k].State
		if !n.isInit(x) {
			continue
		}
		if n.isSidecar(x) && n.statuses[k].Started == nil || !n.isSidecar(x) && (s.Terminated == nil || s.Terminated.ExitCode != 0) {
			return false
		}
	}
	return true
}

func (n *nodePod) initialized() bool {
	return slices.ContainsFunc(n.all(), func(x *corev1.Container) bool { return !n.isInit(x) && n.runsMade[x.Name] > 0 })
}

// withoutSidecars are the statuses as they are when the kubelet has stopped the sidecars,
// which it does when nothing else will run.
func (n *nodePod) withoutSidecars() []corev1.ContainerStatus {
	list := slices.Clone(n.statuses)
	for i, x := range n.all() {
		if n.isSidecar(x) && list[i].Started != nil {
			list[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		}
	}
	return list
}

func (n *nodePod) firstFailure() int {
	code := 0
	for i, x := range n.all() {
		if s := n.statuses[i].State.Terminated; s != nil && s.ExitCode != 0 && !n.isSidecar(x) && (code == 0 || !n.isInit(x)) {
			code = int(s.ExitCode)
			if !n.isInit(x) {
				return code
			}
		}
	}
	return code
}
