package explain_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/explain"
)

// now is when every test explains; the Job was created ten minutes before.
var now = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func uid(n int) types.UID { return types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", n)) }

// job is one that started ten minutes ago and has no pods.
func job(change ...func(*batchv1.Job)) *batchv1.Job {
	started := before(10 * time.Minute)
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job", UID: uid(1), CreationTimestamp: started},
		Spec: batchv1.JobSpec{
			Parallelism: ptr.To[int32](1), Completions: ptr.To[int32](1), BackoffLimit: ptr.To[int32](3),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}},
		},
		Status: batchv1.JobStatus{StartTime: &started},
	}
	for _, f := range change {
		f(j)
	}
	return j
}

// pod is one of the Job, n minutes old.
func pod(n int, phase corev1.PodPhase, change ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: fmt.Sprintf("job-%d", n), UID: uid(100 + n), CreationTimestamp: before(5 * time.Minute),
			Finalizers: []string{batchv1.JobTrackingFinalizer},
		},
		Status: corev1.PodStatus{Phase: phase},
	}
	for _, f := range change {
		f(&p)
	}
	return p
}

func failedWith(code int32, ago time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: before(ago)},
		}}}
	}
}

func waitingFor(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "nowhere/image:1", RestartCount: 4, State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message},
		}}}
	}
}

func restarted(times int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: times}}
	}
}

func podCondition(kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message})
	}
}

func condition(kind batchv1.JobConditionType, reason, message string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: before(2 * time.Minute),
		})
	}
}

func refused(message string) []corev1.Event {
	return []corev1.Event{{Reason: "FailedCreate", Message: "Error creating: " + message, LastTimestamp: before(5 * time.Second)}}
}

func podEvents(events ...corev1.Event) map[string][]corev1.Event {
	return map[string][]corev1.Event{"job-1": events}
}

// pending are the facts of a Job whose pod is Pending, with events on the pod.
func pending(events ...corev1.Event) explain.Facts {
	return explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodPending)}, PodEvents: podEvents(events...)}
}

func kubeletEvent(reason, message string, ago time.Duration) corev1.Event {
	return corev1.Event{Reason: reason, Message: message, LastTimestamp: before(ago)}
}

func notStarted(j *batchv1.Job) { j.Status.StartTime = nil }

// A reportCase is what is seen of a Job, and what the report says of it.
type reportCase struct {
	facts explain.Facts
	state explain.State
	// says are parts of the report, as "field: text"; silent are parts that it must not have.
	says, silent []string
}

func explainEach(t *testing.T, cases map[string]reportCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.facts.Now = now
			r, err := explain.Explain(tc.facts, engine.DecideJob)
			if err != nil {
				t.Fatal(err)
			}
			text := flat(r)
			if r.State != tc.state {
				t.Errorf("state %s, want %s", r.State, tc.state)
			}
			for _, part := range tc.says {
				if !strings.Contains(text, part) {
					t.Errorf("it does not say %q", part)
				}
			}
			for _, part := range tc.silent {
				if strings.Contains(text, part) {
					t.Errorf("it says %q", part)
				}
			}
			if t.Failed() {
				t.Log(text)
			}
		})
	}
}

// What a container waits for is told as the option neverStarted tells it apart.
func TestAContainerThatCannotStart(t *testing.T) {
	explainEach(t, map[string]reportCase{
		"an image that cannot be pulled": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodPending, waitingFor("ImagePullBackOff", "Back-off pulling image"))}},
			state: explain.Stuck,
			says: []string{
				"headline: 1 of 1 active pods cannot start: the image nowhere/image:1 of container main cannot be pulled (ImagePullBackOff: Back-off pulling image).",
				"pod: job-1 image", "note: pods that never start", "change: Put the image there",
			},
		},
		"a config map that is missing, with a deadline": {
			facts: explain.Facts{
				Job:  job(func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = ptr.To[int64](900) }),
				Pods: []corev1.Pod{pod(1, corev1.PodPending, waitingFor("CreateContainerConfigError", `configmap "x" not found`))},
			},
			state:  explain.Stuck,
			says:   []string{`pod: job-1 config`, "end: Failed (DeadlineExceeded) at 2026-05-04T12:05:00Z (in 5m)", "wait: the deadline"},
			silent: []string{"note: pods that never start"},
		},
		"a container that would run as root": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodPending, waitingFor("CreateContainerConfigError", "container has runAsNonRoot and image will run as root"))}},
			state: explain.Stuck,
			says:  []string{"pod: job-1 config", "a container main would run as root, which runAsNonRoot forbids", "change: Set runAsUser, or use an image that does not run as root, in a new Job."},
		},
		"an image that its signature does not fit": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodPending, waitingFor("SignatureValidationFailed", "no signature"))}},
			state: explain.Stuck,
			says:  []string{"pod: job-1 image", "the image nowhere/image:1 of container main cannot be pulled (SignatureValidationFailed: no signature)"},
		},
		"an image that cannot be mounted": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodPending, waitingFor("ImageVolumeMountFailed", "no such path"))}},
			state: explain.Stuck,
			says:  []string{"pod: job-1 image", "an image that a container main mounts as a volume cannot be mounted", "change: Correct the image volume"},
		},
		"a hook that fails": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodPending, waitingFor("PreStartHookError", "odd"))}},
			state: explain.Stuck,
			says:  []string{"pod: job-1 config", "a container main cannot be started (PreStartHookError: odd)"},
		},
	})
}

func TestAPodThatCannotStart(t *testing.T) {
	explainEach(t, map[string]reportCase{
		"no node takes the pod": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{
				pod(1, corev1.PodPending, podCondition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, "0/3 nodes are available: insufficient cpu")),
			}},
			state: explain.Stuck,
			says:  []string{"headline: 1 of 1 active pods cannot start: no node takes it: 0/3 nodes are available", "pod: job-1 scheduling"},
		},
		"a claim that is missing": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{
				pod(1, corev1.PodPending, podCondition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, `0/1 nodes are available: persistentvolumeclaim "data" not found. not found`)),
			}},
			state: explain.Stuck,
			says: []string{
				`headline: 1 of 1 active pods cannot start: the persistent volume claim "data" does not exist.`,
				`change: Create the persistent volume claim "data" in the namespace ns`,
			},
		},
		"scheduling gates": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodPending,
				podCondition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonSchedulingGated, ""),
				func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/gate"}} })}},
			state: explain.Stuck,
			says:  []string{"it has scheduling gates: example.com/gate"},
		},
		"no sandbox": {
			facts: pending(kubeletEvent("FailedCreatePodSandBox", `plugin type="bridge" failed`, time.Minute)),
			state: explain.Stuck,
			says:  []string{`pod: job-1 sandbox`, `cannot start: its node cannot set up the pod's sandbox, such as its network (FailedCreatePodSandBox: plugin type="bridge" failed).`},
		},
	})
}

func TestAPodOnALostNode(t *testing.T) {
	explainEach(t, map[string]reportCase{
		"a node that is gone": {
			facts: explain.Facts{
				Job: job(func(j *batchv1.Job) { j.Spec.PodReplacementPolicy = ptr.To(batchv1.Failed) }),
				Pods: []corev1.Pod{pod(1, corev1.PodRunning, func(p *corev1.Pod) {
					at := before(5 * time.Minute)
					p.DeletionTimestamp, p.Spec.NodeName = &at, "n1"
				})},
			},
			state: explain.Waiting,
			says:  []string{"pods that are being deleted: 1", "pod: job-1 terminating", "should have ended 5m ago, and still runs on node n1", "job.terminationDeadlineSeconds"},
		},
		"a node that is gone, and the pod is taken as failed later": {
			facts: lostNode(400),
			state: explain.Waiting,
			says: []string{
				"pods that are being deleted: 1", "still runs on node n1; by terminationDeadlineSeconds it is taken as failed at 2026-05-04T12:01:40Z",
				"wait: pod job-1, which is being deleted, counts as failed 400s after its deletion was due",
			},
			silent: []string{"job.terminationDeadlineSeconds of a JobPolicy"},
		},
		"a node that is gone, and the pod has been taken as failed": {
			facts: lostNode(100),
			state: explain.Waiting,
			says:  []string{"still runs on node n1; by terminationDeadlineSeconds it has been taken as failed since 2026-05-04T11:56:40Z (3m20s ago), and may do its work all the same"},
		},
		"the node counts later": {
			facts: onNode(lostNode(400), jobpolicyv1.NodeState_NODE_STATE_NOT_READY), state: explain.Waiting,
			says: []string{"it is taken as failed at 2026-05-04T12:01:40Z (in 1m40s), if its node is not Ready then", "400s after its deletion was due, if its node is not Ready"},
		},
		"the node is not Ready": {
			facts: onNode(lostNode(100), jobpolicyv1.NodeState_NODE_STATE_NOT_READY), state: explain.Waiting,
			says: []string{"it is taken as failed, because its node is not Ready (if the executor may read nodes), and may do its work all the same"},
		},
		"the node is gone": {
			facts: onNode(lostNode(100), jobpolicyv1.NodeState_NODE_STATE_GONE), state: explain.Waiting,
			says: []string{"it is taken as failed, because its node is not Ready"},
		},
		"the node is Ready": {
			facts: onNode(lostNode(100), jobpolicyv1.NodeState_NODE_STATE_READY), state: explain.Waiting,
			says: []string{"it is not taken as failed, because its node is Ready", "that the Job waits for because their nodes are Ready: 1 (job-1,"},
		},
		"the node is Ready again after the pod was given up": {
			facts: givenUp(onNode(lostNode(100), jobpolicyv1.NodeState_NODE_STATE_READY), false), state: explain.Waiting,
			says:   []string{"it is not taken as gone, because its node is Ready", "that the Job waits for because their nodes are Ready: 1 (job-1,"},
			silent: []string{"taken as failed", "still waits"},
		},
		"the node is Ready again after the pod was recorded": {
			facts: givenUp(onNode(lostNode(100), jobpolicyv1.NodeState_NODE_STATE_READY), true), state: explain.Waiting,
			says: []string{"it is not taken as gone, because its node is Ready"}, silent: []string{"taken as failed"},
		},
		"the pod was released before it was to be gone": {
			facts: givenUp(lostNode(400), false), state: explain.Waiting,
			says: []string{"it is taken as gone at 2026-05-04T12:01:40Z", "wait: pod job-1, which is being deleted, counts as gone 400s"}, silent: []string{"taken as failed"},
		},
		"the node is not known": {
			facts: onNode(lostNode(100), jobpolicyv1.NodeState_NODE_STATE_UNSPECIFIED), state: explain.Waiting,
			says: []string{"it is taken as failed if its node is not Ready, which is not known here", "because it is not known whether their nodes are Ready"},
		},
	})
}

// givenUp has the Job's status record the pod as failed, or count it, and then the pod is released.
func givenUp(f explain.Facts, recordedOnly bool) explain.Facts {
	if recordedOnly {
		f.Job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Failed: []types.UID{f.Pods[0].UID}}
		return f
	}
	f.Job.Status.Failed, f.Pods[0].Finalizers = 1, nil
	return f
}

// onNode has the Job look at the node, which is in this state.
func onNode(f explain.Facts, state jobpolicyv1.NodeState) explain.Facts {
	annotations := f.Job.Annotations
	annotations["jobpolicy.dev/policy"] = strings.Replace(annotations["jobpolicy.dev/policy"], "}}", `, "terminationDeadlineNode": "NotReady"}}`, 1)
	f.Nodes = map[string]jobpolicyv1.NodeState{"n1": state}
	return f
}

// lostNode is a Job with a pod that should have ended five minutes ago, and with a termination deadline.
func lostNode(deadline int) explain.Facts {
	return explain.Facts{
		Job: job(func(j *batchv1.Job) {
			j.Spec.PodReplacementPolicy, j.Spec.ManagedBy = ptr.To(batchv1.Failed), ptr.To("jobpolicy.dev/executor")
			j.Annotations = map[string]string{"jobpolicy.dev/policy": fmt.Sprintf(`{"job": {"terminationDeadlineSeconds": %d}}`, deadline)}
		}),
		Pods: []corev1.Pod{pod(1, corev1.PodRunning, func(p *corev1.Pod) {
			at := before(5 * time.Minute)
			p.DeletionTimestamp, p.Spec.NodeName = &at, "n1"
			p.Finalizers = []string{batchv1.JobTrackingFinalizer}
		})},
	}
}

func TestAVolumeThatCannotBeMounted(t *testing.T) {
	explainEach(t, map[string]reportCase{
		"a volume of a secret that is missing": {
			facts: explain.Facts{
				Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodPending, waitingFor("ContainerCreating", ""))},
				PodEvents: podEvents(kubeletEvent("FailedMount", `MountVolume.SetUp failed for volume "keys" : secret "s" not found`, time.Minute)),
			},
			state: explain.Stuck,
			says: []string{
				`headline: 1 of 1 active pods cannot start: the secret "s" does not exist, and the volume "keys" needs it (FailedMount).`,
				`pod: job-1 volume`, `change: Create the secret "s" in the namespace ns: the kubelet tries again by itself.`, "note: pods that never start",
			},
		},
		"a volume whose config map lacks a key": {
			facts: explain.Facts{
				Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodPending, func(p *corev1.Pod) {
					p.Spec.Volumes = []corev1.Volume{{Name: "other"}, {Name: "settings", VolumeSource: corev1.VolumeSource{
						ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "app"}},
					}}}
				})},
				PodEvents: podEvents(kubeletEvent("FailedMount", `MountVolume.SetUp failed for volume "settings" : configmap references non-existent config key: app.ini`, time.Minute)),
			},
			state: explain.Stuck,
			says: []string{
				`headline: 1 of 1 active pods cannot start: the config map "app" lacks the key "app.ini", and the volume "settings" needs it (FailedMount).`,
				`change: Add the key "app.ini" to the config map "app"`,
			},
		},
		"a volume for another reason": {
			facts: pending(kubeletEvent("FailedMount", `MountVolume.SetUp failed for volume "nfs" : mount failed: exit status 32`, time.Minute)),
			state: explain.Stuck,
			says:  []string{`cannot start: the volume "nfs" cannot be mounted (FailedMount: mount failed: exit status 32).`},
		},
		"a volume that is not attached": {
			facts: pending(kubeletEvent("FailedAttachVolume", `Multi-Attach error for volume "pvc-1"`, time.Minute)),
			state: explain.Stuck,
			says:  []string{`pod: job-1 volume`, `cannot start: a volume cannot be attached to its node (FailedAttachVolume: Multi-Attach error for volume "pvc-1").`},
		},
	})
}

func TestTheEventThatSaysMostOfAVolume(t *testing.T) {
	explainEach(t, map[string]reportCase{
		"a volume, with a later event that names no cause": {
			facts: pending(
				kubeletEvent("FailedMount", `MountVolume.SetUp failed for volume "settings" : configmap "app" not found`, time.Minute),
				kubeletEvent("FailedMount", `Unable to attach or mount volumes: unmounted volumes=[settings], unattached volumes=[], failed to process volumes=[]: timed out waiting for the condition`, time.Second),
			),
			state: explain.Stuck,
			says:  []string{`cannot start: the config map "app" does not exist, and the volume "settings" needs it (FailedMount).`},
		},
		"a volume, of which only an event without a cause is left": {
			facts: pending(kubeletEvent("FailedMount", `Unable to attach or mount volumes: unmounted volumes=[settings], unattached volumes=[]: timed out`, time.Second)),
			state: explain.Stuck,
			says:  []string{`cannot start: the volume "settings" cannot be mounted (FailedMount: Unable to attach`, "change: kubectl describe pod job-1 -n ns"},
		},
		"a volume that was mounted at a later try": {
			facts: explain.Facts{
				Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodPending, waitingFor("ContainerCreating", ""), func(p *corev1.Pod) { p.CreationTimestamp = before(time.Minute) })},
				PodEvents: podEvents(
					kubeletEvent("FailedMount", `MountVolume.SetUp failed for volume "settings" : failed to sync configmap cache: timed out waiting for the condition`, 50*time.Second),
					kubeletEvent("Pulling", `Pulling image "large"`, 49*time.Second),
				),
			},
			state:  explain.Running,
			silent: []string{"pod: ", "settings"},
		},
	})
}

// How soon pods that a quota refuses are tried again, and who may change that.
func TestPodsThatAQuotaRefuses(t *testing.T) {
	explainEach(t, map[string]reportCase{
		"a quota": {
			facts: explain.Facts{Job: job(), Events: refused(`pods "job-x" is forbidden: exceeded quota: q, requested: pods=1`)},
			state: explain.Blocked,
			says:  []string{"headline: The Job has none of 1 wanted pods, because the API server refuses to create more: the quota is used up", "change: Raise the quota", "Last tried 5s ago.", "change: The Job tries again at most 1m after each refusal."},
		},
		"a quota, and a Job that could have a delay of its own": {
			facts: explain.Facts{Job: job(managedByUs), Events: refused("exceeded quota: q")}, state: explain.Blocked,
			says: []string{"change: The Job tries again at most 1m after each refusal; job.retryDelay.quotaMaxSeconds of a JobPolicy makes that shorter."},
		},
		"a quota, and a delay of a Job that jobpolicy does not run": {
			facts: explain.Facts{Job: job(asksFor("{job: {retryDelay: {quotaMaxSeconds: 5}}}")), Events: refused("exceeded quota: q")}, state: explain.Blocked,
			says: []string{"change: The Job tries again at most 1m after each refusal."}, silent: []string{"quotaMaxSeconds of"},
		},
		"a quota, and events that tell of some tries only": {
			facts: explain.Facts{Job: job(managedByUs, asksFor("{job: {retryDelay: {quotaMaxSeconds: 5}}}")), Events: []corev1.Event{{
				Reason: "FailedCreate", Message: "Error creating: exceeded quota: q", LastTimestamp: before(30 * time.Second),
			}}},
			state: explain.Blocked, says: []string{"exceeded quota: q. Last told 30s ago; not each try is told.", "at most 5s after"}, silent: []string{"Last tried"},
		},
		"a quota, and a delay of its own": {
			facts: explain.Facts{Job: job(managedByUs, asksFor("{job: {retryDelay: {quotaMaxSeconds: 5}}}")), Events: refused("exceeded quota: q")},
			state: explain.Blocked, says: []string{"change: The Job tries again at most 5s after each refusal (job.retryDelay.quotaMaxSeconds of its JobPolicy)."}, silent: []string{"at most 1m"},
		},
		"a quota, and a longer delay of its own": {
			facts: explain.Facts{Job: job(managedByUs, asksFor("{job: {retryDelay: {quotaMaxSeconds: 600}}}")), Events: refused("exceeded quota: q")},
			state: explain.Blocked, says: []string{"change: The Job tries again at most 1m after each refusal; job.retryDelay.quotaMaxSeconds of a JobPolicy makes that shorter"},
		},
	})
}

func TestPodsThatTheAPIServerRefuses(t *testing.T) {
	two := job(func(j *batchv1.Job) { j.Spec.Parallelism, j.Spec.Completions = ptr.To[int32](2), ptr.To[int32](3) })
	explainEach(t, map[string]reportCase{
		"a Workload that is not there yet": {
			facts: explain.Facts{Job: job(), Events: []corev1.Event{{
				Reason: "WaitingForWorkload", Message: "No pods are created yet: TrainJob t, which controls the Job, has no Workload yet", LastTimestamp: before(time.Minute),
			}}},
			state:  explain.Blocked,
			says:   []string{"headline: The Job has none of 1 wanted pods, and creates none before there is a Workload that they can use: TrainJob t, which controls the Job, has no Workload yet."},
			silent: []string{"refuses"},
		},
		"a Workload that is refused": {
			facts: explain.Facts{Job: job(), Events: []corev1.Event{{
				Reason: "FailedWorkloadCreate", Message: "Failed to create Workload for Job job: exceeded quota: q", LastTimestamp: before(5 * time.Second),
			}}},
			state: explain.Blocked, says: []string{"the API server refuses to create more: the quota is used up: exceeded quota: q."}, silent: []string{"tries again at most"},
		},
		"a webhook that is away": {
			facts: explain.Facts{Job: job(), Events: refused(`Internal error occurred: failed calling webhook "w": connection refused`)},
			state: explain.Blocked, says: []string{"an admission webhook does not answer", "change: Fix the webhook"},
		},
		"a webhook that denies": {
			facts: explain.Facts{Job: job(), Events: refused(`admission webhook "w" denied the request: no`)},
			state: explain.Blocked, says: []string{"an admission webhook denies it"},
		},
		"admission changes the pods": {
			facts: explain.Facts{Job: job(), Events: refused(`admission changed the new pod: metadata.labels[app] is "mesh", want "1"`)},
			state: explain.Blocked,
			says:  []string{`admission changed the new pod: metadata.labels[app] is "mesh", want "1", so it does not count`, "change: Find what changes it (kubectl get mutatingwebhookconfigurations"},
		},
		"a Job that stands still": {
			facts: explain.Facts{Job: job(), Events: append(refused("connection reset"), corev1.Event{
				Reason: "RunawayCreation", Message: "1000 pods were created", LastTimestamp: before(time.Second),
			})},
			state:  explain.Blocked,
			says:   []string{"headline: The Job stands still with none of 1 wanted pods: 1000 pods were created.", "change: Stop what changes the pods"},
			silent: []string{"refuses"},
		},
		"a Job that stood still, and is refused now": {
			facts: explain.Facts{Job: job(), Events: append(refused("exceeded quota: q"), corev1.Event{
				Reason: "RunawayCreation", Message: "1000 pods were created", LastTimestamp: before(time.Minute),
			})},
			state: explain.Blocked, says: []string{"the quota is used up"}, silent: []string{"stands still"},
		},
		"a quota that still leaves place for one": {
			facts: explain.Facts{Job: two, Events: refused("exceeded quota: q"), Pods: []corev1.Pod{pod(1, corev1.PodRunning)}},
			state: explain.Blocked,
			says:  []string{"headline: The Job has 1 of 2 wanted pods, because the API server refuses to create more"},
		},
		"a quota that was raised since": {
			facts: explain.Facts{Job: two, Events: refused("exceeded quota: q"), Pods: []corev1.Pod{
				pod(1, corev1.PodRunning), pod(2, corev1.PodSucceeded, func(p *corev1.Pod) { p.CreationTimestamp = before(4 * time.Second) }),
			}},
			state:  explain.Running,
			says:   []string{"headline: The Job goes on: 1 pod is to be created."},
			silent: []string{"quota"},
		},
	})
}

func TestAJobThatDoesNotGoOn(t *testing.T) {
	explainEach(t, map[string]reportCase{
		"waiting for the retry delay": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{
				pod(1, corev1.PodFailed, failedWith(1, time.Minute)), pod(2, corev1.PodFailed, failedWith(7, 8*time.Second)),
			}},
			state: explain.BackingOff,
			says: []string{
				"headline: The Job waits before it tries again, until 2026-05-04T12:00:12Z (in 12s): failures in a row: 2. The last one, job-2, failed 8s ago: container main ended with exit code 7.",
				"wait: the retry delay", "retries: 1 of 3 left", "end: Failed (BackoffLimitExceeded) when 2 more pods fail", "end: Complete when one more pod has succeeded",
				"note: status.failed", "note: retry delay", "pod: job-2 failed",
			},
		},
		"suspended": {
			facts: explain.Facts{Job: job(notStarted, condition(batchv1.JobSuspended, "JobSuspended", "Job suspended"), func(j *batchv1.Job) {
				j.Spec.Suspend, j.Spec.ActiveDeadlineSeconds = ptr.To(true), ptr.To[int64](60)
			})},
			state: explain.Suspended,
			says: []string{
				"headline: The Job has been suspended since 2026-05-04T11:58:00Z (2m ago): it gets no pods until spec.suspend is false.", "change: Set spec.suspend to false: kubectl patch job/job -n ns",
				"note: activeDeadlineSeconds", "end: Failed (DeadlineExceeded) when it has been active for 60s",
			},
		},
		"suspended for a queue": {
			facts: explain.Facts{Job: job(notStarted, func(j *batchv1.Job) {
				j.Spec.Suspend, j.Labels = ptr.To(true), map[string]string{"kueue.x-k8s.io/queue-name": "team"}
				j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue, LastTransitionTime: before(0)}}
			})},
			state: explain.Suspended,
			says:  []string{`it waits for a place in the queue "team"`},
		},
		"nobody acts on it": {
			facts: explain.Facts{Job: job(notStarted, func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To("example.com/typo") })},
			state: explain.Unmanaged,
			says:  []string{`it asks for the controller "example.com/typo" (spec.managedBy)`, "note: managedBy", "change: spec.managedBy cannot be changed"},
		},
		"the built-in controller is away": {
			facts: explain.Facts{Job: job(notStarted)},
			state: explain.Unmanaged, says: []string{"change: See whether kube-controller-manager runs"},
		},
		"paused": {
			facts: explain.Facts{Job: job(func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](0) })},
			state: explain.Paused, says: []string{"spec.parallelism is 0"},
		},
		"just created": {
			facts: explain.Facts{Job: job(notStarted, func(j *batchv1.Job) { j.CreationTimestamp = before(time.Second) })},
			state: explain.Starting, says: []string{"1 pod is to be created"},
		},
	})
}

func TestAJobThatFails(t *testing.T) {
	explainEach(t, map[string]reportCase{
		"failed by its deadline": {
			facts: explain.Facts{Job: job(
				condition(batchv1.JobFailureTarget, "DeadlineExceeded", "Job was active longer than specified deadline"),
				condition(batchv1.JobFailed, "DeadlineExceeded", "Job was active longer than specified deadline"),
				func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = ptr.To[int64](480) })},
			state:  explain.Failed,
			says:   []string{"headline: The Job failed 2m ago, 8m after it started: Job was active longer than specified deadline (DeadlineExceeded).", "change: spec.activeDeadlineSeconds (480)", "note: conditions"},
			silent: []string{"end: ", "retries: "},
		},
		"failing by a rule": {
			facts: explain.Facts{
				Job:  job(condition(batchv1.JobFailureTarget, "PodFailurePolicy", "Container main for pod ns/job-1 failed with exit code 42 matching FailJob rule at index 0")),
				Pods: []corev1.Pod{pod(1, corev1.PodRunning)},
			},
			state: explain.Failing,
			says:  []string{"headline: The Job has failed: Container main for pod ns/job-1 failed with exit code 42", "1 left"},
		},
		"about to fail": {
			facts: explain.Facts{Job: job(func(j *batchv1.Job) { j.Spec.BackoffLimit = ptr.To[int32](0) }), Pods: []corev1.Pod{pod(1, corev1.PodFailed, failedWith(1, time.Second))}},
			state: explain.Failing,
			says:  []string{"headline: The Job fails; its status does not show it yet. The rule backoffLimitExceeded decides: failed pods 1, backoffLimit 0."},
		},
		"more failures than the limit": {
			facts: explain.Facts{Job: job(func(j *batchv1.Job) { j.Status.Failed = 9 }, condition(batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit"))},
			state: explain.Failed,
			says:  []string{"note: backoffLimit: status.failed may be above backoffLimit"},
		},
	})
}

func TestAJobThatRuns(t *testing.T) {
	explainEach(t, map[string]reportCase{
		"it runs": {
			facts: explain.Facts{
				Job:  job(func(j *batchv1.Job) { j.Spec.Completions, j.Status.Succeeded = ptr.To[int32](4), 1 }),
				Pods: []corev1.Pod{pod(1, corev1.PodRunning, podCondition(corev1.PodReady, corev1.ConditionTrue, "", ""))},
			},
			state:  explain.Running,
			says:   []string{"headline: The Job runs: 1 of 1 wanted pods are active, 1 of them ready; 1 of 4 completions."},
			silent: []string{"note: ", "pod: "},
		},
		"a container that fails again and again": {
			facts: explain.Facts{
				Job: job(func(j *batchv1.Job) {
					j.Spec.Template.Spec.RestartPolicy, j.Spec.BackoffLimit = corev1.RestartPolicyOnFailure, ptr.To[int32](6)
				}),
				Pods: []corev1.Pod{pod(1, corev1.PodRunning, waitingFor("CrashLoopBackOff", "back-off 40s"))},
			},
			state: explain.Running,
			says:  []string{"pod: job-1 crash", "note: restarts", "container restarts count, too: 4 so far", "or containers have been restarted 6 times in all"},
		},
		"restarts of a pod that has ended do not count": {
			facts: explain.Facts{
				Job: job(func(j *batchv1.Job) {
					j.Spec.Template.Spec.RestartPolicy, j.Spec.BackoffLimit = corev1.RestartPolicyOnFailure, ptr.To[int32](6)
				}),
				Pods: []corev1.Pod{pod(1, corev1.PodRunning, restarted(2)), pod(2, corev1.PodFailed, restarted(3))},
			},
			state: explain.Running,
			says:  []string{"container restarts count, too: 2 so far"},
		},
		"a sidecar keeps the pod open": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodRunning, func(p *corev1.Pod) {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{
					{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
					{Name: "proxy", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
				}
			})}},
			state: explain.Running,
			says:  []string{"pod: job-1 sidecar", "container main is done, container proxy still runs", "note: sidecars"},
		},
		"a pod that is deleted, and the one in its place": {
			facts: explain.Facts{
				Job: job(func(j *batchv1.Job) {
					j.Spec.Parallelism, j.Spec.Completions, j.Status.Terminating = ptr.To[int32](2), ptr.To[int32](2), ptr.To[int32](1)
				}),
				Pods: []corev1.Pod{
					pod(1, corev1.PodRunning, podCondition(corev1.PodReady, corev1.ConditionTrue, "", "")),
					pod(2, corev1.PodRunning, podCondition(corev1.PodReady, corev1.ConditionTrue, "", "")),
					pod(3, corev1.PodRunning, func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(before(time.Second)) }),
				},
			},
			state: explain.Running,
			says:  []string{"note: two pods at once: A pod that is being deleted is replaced at once"},
		},
	})
}

// mustStart is a Job that must start within 15 minutes of its start.
func mustStart(j *batchv1.Job) {
	managedByUs(j)
	j.Annotations = map[string]string{wire.Policy: "{job: {startDeadlineSeconds: 900}}"}
	j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: wire.Started, Status: corev1.ConditionFalse, Reason: "NoPodRan"})
}

func TestADeadlineToStart(t *testing.T) {
	explainEach(t, map[string]reportCase{
		"no pod has run yet": {
			facts: explain.Facts{Job: job(mustStart), Pods: []corev1.Pod{pod(1, corev1.PodPending)}},
			state: explain.Stuck,
			says:  []string{"wait: the deadline to start: a pod must run within 900s", "end: Failed (StartDeadlineExceeded) at ", "unless a pod has run by then"},
		},
		"a pod runs": {
			facts: explain.Facts{Job: job(mustStart), Pods: []corev1.Pod{pod(1, corev1.PodRunning)}},
			state: explain.Running, silent: []string{"StartDeadlineExceeded", "deadline to start"},
		},
		"none has run in time": {
			facts: explain.Facts{Job: job(mustStart, condition(batchv1.JobFailed, "StartDeadlineExceeded", "No pod of the Job ran before its deadline to start"))},
			state: explain.Failed, says: []string{"change: job.startDeadlineSeconds is how soon one of its pods must run."},
		},
	})
}

// The pods of a Job that has failed are ended, and stay: the report says so before and after.
func TestPodsThatAreEnded(t *testing.T) {
	asks := func(j *batchv1.Job) {
		managedByUs(j)
		j.Annotations = map[string]string{wire.Policy: "{job: {whenJobFails: EndPods}}"}
		j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	}
	fails := func(kind batchv1.JobConditionType) func(*batchv1.Job) {
		return condition(kind, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")
	}
	runs := pod(1, corev1.PodRunning)
	at := metav1.NewTime(now.Add(-time.Minute))
	runs.Status.StartTime = &at
	ending := pod(1, corev1.PodRunning)
	ending.Status.StartTime, ending.Spec.ActiveDeadlineSeconds = &at, new(int64(60))
	explainEach(t, map[string]reportCase{
		"a pod runs": {
			facts: explain.Facts{Job: job(asks, fails(batchv1.JobFailureTarget)), Pods: []corev1.Pod{runs}},
			state: explain.Failing, says: []string{"wait: job.whenJobFails: pods that their nodes end, so that their logs stay: 1"},
		},
		"it is ending": {
			facts: explain.Facts{Job: job(asks, fails(batchv1.JobFailureTarget)), Pods: []corev1.Pod{ending}},
			state: explain.Failing, says: []string{"wait: job.whenJobFails: pods that their nodes end, so that their logs stay: 1; pod job-1 is deleted if it has not ended by then"},
		},
		"the Job has failed": {
			facts: explain.Facts{Job: job(asks, fails(batchv1.JobFailed))},
			state: explain.Failed, says: []string{"When it is exceeded, the pod is ended and stays, with its log (job.whenJobFails)."},
		},
	})
}

func TestPodsThatNeverStart(t *testing.T) {
	asks := func(j *batchv1.Job) {
		managedByUs(j)
		j.Annotations = map[string]string{wire.Policy: "{job: {neverStarted: [{problem: Image, afterSeconds: 900}]}}"}
	}
	stuck := pod(1, corev1.PodPending)
	at := metav1.NewTime(now)
	stuck.Status.StartTime = &at
	stuck.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
	explainEach(t, map[string]reportCase{
		"one waits for its image": {
			facts: explain.Facts{Job: job(asks), Pods: []corev1.Pod{stuck}},
			state: explain.Stuck,
			says:  []string{"wait: job.neverStarted: pods that do not start: 1; pod job-1 (ImagePullBackOff) may take 900s, then it counts as failed"},
		},
		"the Job has failed": {
			facts: explain.Facts{Job: job(asks, condition(batchv1.JobFailed, "PodNeverStarted", "Pod ns/job-1 did not start within 900s: ImagePullBackOff"))},
			state: explain.Failed, says: []string{"change: job.neverStarted says how long a pod may take to start, by what keeps it."},
		},
	})
}

// A time.Duration has 292 years at most.
func TestADeadlineInManyYears(t *testing.T) {
	for name, tc := range map[string]struct {
		seconds int64
		place   int // among the ends
		want    string
	}{
		"292 years":      {seconds: math.MaxInt64 / int64(time.Second), place: 0, want: "Failed (DeadlineExceeded) at 2318-"},
		"more":           {seconds: math.MaxInt64/int64(time.Second) + 1, place: 2, want: "Failed (DeadlineExceeded) when it has been active for 9223372037s"},
		"as many as fit": {seconds: math.MaxInt64, place: 2, want: "Failed (DeadlineExceeded) when it has been active for 9223372036854775807s"},
	} {
		t.Run(name, func(t *testing.T) {
			facts := explain.Facts{Job: job(func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = &tc.seconds }), Pods: []corev1.Pod{pod(1, corev1.PodRunning)}, Now: now}
			r, err := explain.Explain(facts, engine.DecideJob)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Ends) != 3 || !strings.HasPrefix(r.Ends[tc.place], tc.want) {
				t.Errorf("ends %q, want %q at %d", r.Ends, tc.want, tc.place)
			}
		})
	}
}

// flat writes a report as lines of "field: text".
func flat(r *explain.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "headline: %s\n", r.Headline)
	if r.Retries != "" {
		fmt.Fprintf(&b, "retries: %s\n", r.Retries)
	}
	for _, w := range r.Waits {
		fmt.Fprintf(&b, "wait: %s\n", w.For)
	}
	for _, c := range r.Change {
		fmt.Fprintf(&b, "change: %s\n", c)
	}
	for _, e := range r.Ends {
		fmt.Fprintf(&b, "end: %s\n", e)
	}
	for _, p := range r.Pods {
		fmt.Fprintf(&b, "pod: %s %s: %s\n", p.Pod, p.Kind, p.Why)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s: %s\n", n.Topic, n.Text)
	}
	return b.String()
}
