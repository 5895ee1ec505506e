package calling

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/snapshot"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Whatever the pods of a Job go through, package snapshot makes of the list of them
// what the executor's tracker made of the events, and the engine takes it.
func TestSnapshotIsWhatTheTrackerSees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLife(t)
		seen := tracker.New(tracker.Key{}, nil)
		seen.SetPolicy(l.policy())
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if pod, exists := l.step(); exists {
				seen.ObservePod(podcache.From(pod), tracker.Watch)
			} else if pod != nil {
				seen.PodGone(pod.UID, tracker.Watch)
			}
			l.record()
			got := l.request(snapshot.Options{ActivePods: true})
			want := l.view(seen, 1_000_000)
			want.Retry = got.Retry // The tracker remembers pods that are gone.
			l.compare(want, got)
			got.Now, got.Job = tomorrow, jobRef
			if _, err := engine.DecideJob(got); err != nil {
				t.Fatalf("the engine refuses the request: %v", err)
			}
		}
	})
}

// A tracker that starts with the pods as they are, in the order in which they
// finished, sees what package snapshot sees: also what delays a retry, and also when
// there are more pods than rows.
func TestSnapshotIsWhatANewTrackerSees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLife(t)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			l.step()
		}
		l.record()
		limit := rapid.IntRange(1, 10).Draw(t, "rows")
		got := l.request(snapshot.Options{ActivePods: true, MaxUnaccounted: limit})
		fresh := tracker.New(tracker.Key{}, nil)
		fresh.SetPolicy(l.policy())
		for _, pod := range l.byEnd() {
			fresh.ObservePod(pod, tracker.Watch)
		}
		l.compare(l.view(fresh, limit), got)
	})
}

// A life is what happens to a Job's pods.
type life struct {
	*rapid.T
	job  *batchv1.Job
	spec *jobpolicyv1.JobSpec
	pods map[types.UID]*corev1.Pod
	made int
	now  time.Time
}

var (
	birth    = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	tomorrow = timestamppb.New(birth.Add(24 * time.Hour))
	jobRef   = &jobpolicyv1.JobRef{Uid: make([]byte, 16), Namespace: "default", Name: "job"}
)

func newLife(t *rapid.T) *life {
	job := &batchv1.Job{Spec: batchv1.JobSpec{
		Completions: new(int32(4)), Parallelism: new(int32(4)),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}},
	}}
	if rapid.Bool().Draw(t, "indexed") {
		job.Spec.CompletionMode = new(batchv1.IndexedCompletion)
		if rapid.Bool().Draw(t, "limits per index") {
			job.Spec.BackoffLimitPerIndex = new(int32(1))
		}
	}
	if rapid.Bool().Draw(t, "replace failed only") {
		job.Spec.PodReplacementPolicy = new(batchv1.Failed)
	}
	if rapid.Bool().Draw(t, "failure policy") {
		job.Spec.PodReplacementPolicy = nil
		job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
			Action: batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
				{Type: "Preempted", Status: corev1.ConditionTrue},
			},
		}, {
			Action: batchv1.PodFailurePolicyActionFailJob,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				ContainerName: rapid.SampledFrom([]*string{nil, new("main")}).Draw(t, "container of the rule"),
				Operator:      batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{42},
			},
		}}}
	}
	spec, err := wire.JobSpec(job)
	if err != nil {
		t.Fatal(err)
	}
	return &life{T: t, job: job, spec: spec, pods: map[types.UID]*corev1.Pod{}, now: birth}
}

func (l *life) policy() tracker.Policy { return tracker.Policy{Policy: wire.PodPolicy(l.job)} }

// step makes a pod, or lets something happen to one, and returns it as it is then.
// exists is false if it is gone; the pod is nil if nothing happened.
func (l *life) step() (pod *corev1.Pod, exists bool) {
	l.now = l.now.Add(time.Duration(rapid.IntRange(1, 90).Draw(l.T, "seconds")) * time.Second)
	if len(l.pods) == 0 || rapid.IntRange(0, 3).Draw(l.T, "make a pod") == 0 {
		pod = l.newPod()
		l.pods[pod.UID] = pod
		return pod, true
	}
	uid := rapid.SampledFrom(slices.Sorted(maps.Keys(l.pods))).Draw(l.T, "pod")
	pod = l.pods[uid].DeepCopy()
	happened := rapid.SampledFrom([]string{"runs", "is ready", "is not ready", "succeeds", "fails", "is deleted", "is released", "goes"}).Draw(l.T, "what happens")
	if happened == "goes" {
		if slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer) {
			return nil, false
		}
		delete(l.pods, uid)
		return pod, false
	}
	l.happens(pod, happened)
	l.made++
	pod.ResourceVersion = fmt.Sprint(l.made)
	l.pods[uid] = pod
	return pod, true
}

func (l *life) happens(pod *corev1.Pod, what string) {
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	switch {
	case what == "is deleted" && pod.DeletionTimestamp == nil:
		pod.DeletionGracePeriodSeconds = new(int64(30))
		pod.DeletionTimestamp = new(metav1.NewTime(l.now.Add(30 * time.Second)))
	case what == "is released":
		pod.Finalizers = nil
	case ended:
	case what == "runs":
		pod.Status.Phase, pod.Spec.NodeName = corev1.PodRunning, "node"
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: rapid.Int32Range(0, 3).Draw(l.T, "restarts")}}
	case what == "is ready", what == "is not ready":
		status := map[string]corev1.ConditionStatus{"is ready": corev1.ConditionTrue, "is not ready": corev1.ConditionFalse}[what]
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(l.now)}}
	case what == "succeeds":
		l.ends(pod, corev1.PodSucceeded, 0)
	case what == "fails":
		l.ends(pod, corev1.PodFailed, rapid.SampledFrom([]int32{1, 42}).Draw(l.T, "exit code"))
	}
}

func (l *life) ends(pod *corev1.Pod, phase corev1.PodPhase, code int32) {
	pod.Status.Phase = phase
	finished := metav1.NewTime(l.now)
	if rapid.IntRange(0, 4).Draw(l.T, "says when it ended") == 0 {
		finished = metav1.Time{}
	}
	for _, name := range []string{"main", "other"} {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: finished}},
		})
	}
	for _, kind := range []corev1.PodConditionType{corev1.DisruptionTarget, "Preempted", "Other"} {
		if rapid.Bool().Draw(l.T, string(kind)) {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue})
		}
	}
}

func (l *life) newPod() *corev1.Pod {
	l.made++
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("pod-%d", l.made), UID: types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012x", l.made)),
		ResourceVersion: fmt.Sprint(l.made), CreationTimestamp: metav1.NewTime(l.now),
		Finalizers: []string{batchv1.JobTrackingFinalizer},
		Annotations: map[string]string{
			batchv1.JobCompletionIndexAnnotation:          rapid.SampledFrom([]string{"0", "1", "2", "3", "9", "x"}).Draw(l.T, "index"),
			batchv1.JobIndexFailureCountAnnotation:        rapid.SampledFrom([]string{"0", "1"}).Draw(l.T, "failures"),
			batchv1.JobIndexIgnoredFailureCountAnnotation: rapid.SampledFrom([]string{"0", "2"}).Draw(l.T, "ignored failures"),
		},
	}}
}

// record writes some of the pods, and one that is not there, into the status: a pod
// that was recorded may even be active, as its phase can flip.
func (l *life) record() {
	recorded := &batchv1.UncountedTerminatedPods{Failed: []types.UID{"00000000-0000-0000-0001-000000000000"}}
	for _, uid := range slices.Sorted(maps.Keys(l.pods)) {
		pod := l.pods[uid]
		if pod.Status.Phase == corev1.PodSucceeded && rapid.Bool().Draw(l.T, "succeeded is recorded") {
			recorded.Succeeded = append(recorded.Succeeded, uid)
		}
		if pod.Status.Phase != corev1.PodSucceeded && rapid.IntRange(0, 3).Draw(l.T, "failed is recorded") == 0 {
			recorded.Failed = append(recorded.Failed, uid)
		}
	}
	l.job.Status.UncountedTerminatedPods = recorded
}

func (l *life) request(o snapshot.Options) *jobpolicyv1.DecideJobRequest {
	status, err := wire.JobStatus(&l.job.Status)
	if err != nil {
		l.Fatal(err)
	}
	var pods []snapshot.Pod
	for _, pod := range l.pods { // In no order.
		facts, err := wire.Pod(pod)
		if err != nil {
			l.Fatal(err)
		}
		pods = append(pods, facts)
	}
	return snapshot.Request(l.spec, status, pods, o)
}

// view is the request that the executor makes of what a tracker knows.
func (l *life) view(seen *tracker.Job, rows int) *jobpolicyv1.DecideJobRequest {
	v := seen.View(tracker.ViewOptions{Uncounted: l.job.Status.UncountedTerminatedPods, MaxRows: rows, ActiveRows: 1_000_000})
	return &jobpolicyv1.DecideJobRequest{
		Pods: v.Pods, UnaccountedPods: v.Unaccounted, UnlistedPods: v.Unlisted, ConfirmedReleases: v.Confirmed,
		ActivePods: v.Active, InFlight: v.InFlight, Retry: v.Retry,
	}
}

// byEnd are the pods in the order in which they ended.
func (l *life) byEnd() []*podcache.Pod {
	end := map[types.UID]time.Time{}
	var pods []*podcache.Pod
	for _, uid := range slices.Sorted(maps.Keys(l.pods)) {
		pod := podcache.From(l.pods[uid])
		pods = append(pods, pod)
		switch {
		case !pod.ContainersEnded.IsZero():
			end[uid] = pod.ContainersEnded
		case pod.Unready:
			end[uid] = pod.ReadyChanged
		case pod.Deleting:
			end[uid] = pod.DeletionAsked
		default:
			end[uid] = pod.Created
		}
	}
	slices.SortStableFunc(pods, func(a, b *podcache.Pod) int { return end[a.UID].Compare(end[b.UID]) })
	return pods
}

func (l *life) compare(want, got *jobpolicyv1.DecideJobRequest) {
	l.Helper()
	if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreFields(got, "spec", "status")); diff != "" {
		l.Fatalf("(-tracker +snapshot):\n%s", diff)
	}
}
