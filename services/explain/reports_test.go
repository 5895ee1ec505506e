package explain_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/services/explain"
)

func container(name string, state corev1.ContainerState) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: state}
}

func runsFor(d time.Duration) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: before(d)}}
}

func endedBy(code int32, reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message, FinishedAt: before(5 * time.Second)}}
}

func containers(statuses ...corev1.ContainerStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.ContainerStatuses = statuses }
}

func onFailure(j *batchv1.Job) { j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure }

// initializes is a pod whose init container runs.
func initializes(p *corev1.Pod) {
	p.Spec.InitContainers = []corev1.Container{{Name: "wait-for"}}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{container("wait-for", runsFor(4*time.Minute))}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{container("main", corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}})}
}

// everySecond lists every second index from one to before another.
func everySecond(from, to int) string {
	var list []string
	for ; from < to; from += 2 {
		list = append(list, strconv.Itoa(from))
	}
	return strings.Join(list, ",")
}

// proxied is a pod of which only a proxy still runs.
var proxied = containers(container("main", endedBy(0, "Completed", "")), container("istio-proxy", runsFor(time.Minute)))

// The headline names what a Job waits for, also if its pods run.
func TestAJobWhosePodsRunForNothing(t *testing.T) {
	twoPods := job(func(j *batchv1.Job) { j.Spec.Parallelism, j.Spec.Completions = ptr.To[int32](2), ptr.To[int32](2) })
	explainEach(t, map[string]reportCase{
		"a proxy that outlives the work": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodRunning, proxied)}},
			state: explain.Running,
			says:  []string{"0 of 1 completions. In pod job-1, container main is done, container istio-proxy still runs and keeps the pod open.", "change: If that one is a sidecar, make it an init container"},
		},
		"a proxy beside a pod that works": {
			facts:  explain.Facts{Job: twoPods, Pods: []corev1.Pod{pod(1, corev1.PodRunning, proxied), pod(2, corev1.PodRunning)}},
			state:  explain.Running,
			says:   []string{"0 of 2 completions.\n", "pod: job-1 sidecar"},
			silent: []string{"change: "},
		},
		"an init container that waits": {
			facts:  explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodPending, initializes)}},
			state:  explain.Running,
			says:   []string{"In pod job-1, init container wait-for has been running for 4m, and the next container starts when it has succeeded.", "change: kubectl logs job-1 -n ns -c wait-for"},
			silent: []string{"cannot start", "never starts"},
		},
		"a sidecar that does not pass its startup probe": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodPending, initializes, func(p *corev1.Pod) {
				p.Spec.InitContainers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
				p.Status.InitContainerStatuses[0].Started = ptr.To(false)
			})}},
			state: explain.Running,
			says:  []string{"sidecar wait-for has been running for 4m, and the next container starts when it has passed its startup probe."},
		},
		"a node that does not begin": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodPending, podCondition(corev1.PodScheduled, corev1.ConditionTrue, "", ""), func(p *corev1.Pod) { p.Spec.NodeName = "n1" })}},
			state: explain.Stuck,
			says:  []string{"it has been Pending for 5m: node n1 has it, and has started no container yet."},
		},
	})
}

// A verdict that counts failures does not say why the pods failed. The report does.
func TestWhyTheLastPodFailed(t *testing.T) {
	exceeded := condition(batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
	noProgram := containers(container("main", endedBy(128, "StartError", `exec: "exit 1": executable file not found in $PATH`)))
	oom := containers(container("main", endedBy(137, "OOMKilled", "")))
	crash := func(p *corev1.Pod) {
		waitingFor("CrashLoopBackOff", "")(p)
		p.Status.ContainerStatuses[0].RestartCount, p.Status.ContainerStatuses[0].LastTerminationState = 1, endedBy(137, "OOMKilled", "")
	}
	raises := func(j *batchv1.Job) {
		managedByUs(j)
		j.Annotations = map[string]string{wire.Policy: "{job: {nextTryResources: {resource: Memory, max: 1Gi}}}"}
	}
	explainEach(t, map[string]reportCase{
		"a program that is not there": {
			facts: explain.Facts{Job: job(exceeded, func(j *batchv1.Job) { j.Status.Failed = 4 }), Pods: []corev1.Pod{pod(1, corev1.PodFailed, noProgram)}},
			state: explain.Failed,
			says:  []string{`(BackoffLimitExceeded). Pod job-1 failed 5s ago: container main ended with exit code 128 (StartError: exec: "exit 1": executable file not found in $PATH).`},
		},
		"a pod that failed, and one that was ended with the Job": {
			facts: explain.Facts{
				Job:  job(exceeded, func(j *batchv1.Job) { j.Status.Failed = 5 }),
				Pods: []corev1.Pod{pod(1, corev1.PodFailed, failedWith(7, 3*time.Minute)), pod(2, corev1.PodFailed, itself("DeadlineExceeded", ""), failedWith(143, time.Second))},
			},
			state: explain.Failed, says: []string{"Pod job-1 failed 3m ago: container main ended with exit code 7.", "pod: job-1 failed"},
		},
		"a pod that its own deadline ended, before the verdict": {
			facts: explain.Facts{Job: job(exceeded), Pods: []corev1.Pod{pod(1, corev1.PodFailed, itself("DeadlineExceeded", ""), failedWith(143, 3*time.Minute))}},
			state: explain.Failed, says: []string{"Pod job-1 failed 3m ago: DeadlineExceeded; container main ended with exit code 143."},
		},
		"only a pod that was deleted with the Job": {
			facts: explain.Facts{Job: job(exceeded), Pods: []corev1.Pod{pod(1, corev1.PodFailed, failedWith(143, time.Second), func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(before(time.Second)) })}},
			state: explain.Failed, says: []string{"(BackoffLimitExceeded).\n", "pod: job-1 failed"},
		},
		"failed indexes": {
			facts: explain.Facts{Job: job(condition(batchv1.JobFailed, "FailedIndexes", "Job has failed indexes"), func(j *batchv1.Job) {
				j.Spec.CompletionMode, j.Spec.Completions, j.Spec.BackoffLimitPerIndex = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](3), ptr.To[int32](1)
				j.Spec.BackoffLimit = ptr.To[int32](2147483647)
				j.Status.FailedIndexes, j.Status.CompletedIndexes, j.Status.Succeeded, j.Status.Failed = ptr.To("0,2"), "1", 1, 4
			})},
			state: explain.Failed,
			says:  []string{"change: Indexes that failed: 0,2 (status.failedIndexes). spec.backoffLimitPerIndex (1)"},
		},
		"many failed indexes": {
			facts: explain.Facts{Job: job(condition(batchv1.JobFailed, "FailedIndexes", "Job has failed indexes"), func(j *batchv1.Job) {
				j.Spec.CompletionMode, j.Spec.Completions, j.Spec.BackoffLimitPerIndex = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](100000), ptr.To[int32](1)
				j.Status.FailedIndexes = ptr.To(everySecond(10000, 10120))
			})},
			state: explain.Failed,
			says:  []string{"Indexes that failed: " + everySecond(10000, 10100) + ",… (status.failedIndexes)"},
		},
		"a container that runs out of memory again and again": {
			facts: explain.Facts{Job: job(onFailure), Pods: []corev1.Pod{pod(1, corev1.PodRunning, crash)}},
			state: explain.Running,
			says:  []string{"failed once in this pod, last with exit code 137 (OOMKilled), and waits"},
		},
		"out of memory": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodFailed, oom)}},
			state: explain.BackingOff,
			says:  []string{"change: Container main ran out of memory.", "job.nextTryResources"},
		},
		"out of memory, and the next try gets more": {
			facts:  explain.Facts{Job: job(raises), Pods: []corev1.Pod{pod(1, corev1.PodFailed, oom)}},
			state:  explain.BackingOff,
			says:   []string{"change: Container main ran out of memory."},
			silent: []string{"the option job.nextTryResources"},
		},
	})
}

// A container that was restarted counts toward backoffLimit, although it cannot be started.
func TestRestartsOfAContainerThatCannotBeStarted(t *testing.T) {
	never := "note: pods that never start"
	cannot := waitingFor("RunContainerError", "no such file")
	explainEach(t, map[string]reportCase{
		"restarted": {
			facts: explain.Facts{Job: job(onFailure, func(j *batchv1.Job) { j.Spec.BackoffLimit = ptr.To[int32](9) }), Pods: []corev1.Pod{pod(1, corev1.PodPending, cannot)}},
			state: explain.Stuck, says: []string{"container restarts count, too: 4 so far"}, silent: []string{never},
		},
		"restarts that do not count": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodPending, cannot)}},
			state: explain.Stuck, says: []string{never},
		},
		"another pod that was not restarted": {
			facts: explain.Facts{Job: job(onFailure, func(j *batchv1.Job) { j.Spec.BackoffLimit, j.Spec.Parallelism = ptr.To[int32](9), ptr.To[int32](2) }), Pods: []corev1.Pod{
				pod(1, corev1.PodPending, cannot), pod(2, corev1.PodPending, cannot, func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 0 }),
			}},
			state: explain.Stuck, says: []string{never},
		},
	})
}

// Whoever waits for the end of a Job, or for its deletion, reads what it depends on.
func TestWhatComesOfAJobThatIsOver(t *testing.T) {
	complete := condition(batchv1.JobComplete, "CompletionsReached", "Reached expected number of succeeded pods")
	late := func(kind batchv1.JobConditionType, reason string) explain.Facts {
		return explain.Facts{
			Job:  job(condition(kind, reason, ""), func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = ptr.To[int64](60) }),
			Pods: []corev1.Pod{pod(1, corev1.PodRunning, func(p *corev1.Pod) { p.DeletionTimestamp, p.Spec.NodeName = ptr.To(before(5*time.Minute)), "n1" })},
		}
	}
	owner := func(apiVersion string) func(*batchv1.Job) {
		return func(j *batchv1.Job) {
			j.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: "CronJob", Name: "hello", UID: uid(9)}}
		}
	}
	deadline := condition(batchv1.JobFailed, "DeadlineExceeded", "")
	explainEach(t, map[string]reportCase{
		"a deadline has passed, and a node is lost": {
			facts: late(batchv1.JobFailureTarget, "DeadlineExceeded"), state: explain.Failing,
			says: []string{"should have ended 5m ago, and still runs on node n1", "change: Wait until they have ended. If their node is gone", "job.terminationDeadlineSeconds", "note: logs: When a Job fails, its active pods are deleted"},
		},
		"it has succeeded, and a node is lost": {
			facts: late(batchv1.JobSuccessCriteriaMet, "SuccessPolicy"), state: explain.Completing,
			says: []string{"job.terminationDeadlineSeconds"}, silent: []string{"note: logs"},
		},
		"a deadline that keeps the logs": {
			facts: explain.Facts{Job: job(deadline, managedByUs, func(j *batchv1.Job) {
				j.Annotations, j.Spec.ActiveDeadlineSeconds = map[string]string{wire.Policy: "{job: {whenJobFails: EndPods}}"}, ptr.To[int64](60)
			})},
			state: explain.Failed, silent: []string{"note: logs"},
		},
		"created from a CronJob that does not control it": {
			facts: explain.Facts{Job: job(complete, owner("batch/v1"))}, state: explain.Complete,
			says: []string{"note: history limits: The Job names the CronJob hello as an owner, but not as its controller"},
		},
		"owned by a CronJob of another API": {
			facts: explain.Facts{Job: job(complete, owner("example.com/v1"))}, state: explain.Complete, silent: []string{"note: history limits"},
		},
	})
}

// A pod that is Pending may have started: what of it has is told, and what it does.
func TestAPodThatHasStartedInPart(t *testing.T) {
	again := func(code int32, policy *corev1.ContainerRestartPolicy) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			initializes(p)
			p.Spec.InitContainers[0].RestartPolicy = policy
			s := &p.Status.InitContainerStatuses[0]
			s.State, s.RestartCount, s.LastTerminationState, s.Started = runsFor(20*time.Second), 2, endedBy(code, "Error", ""), ptr.To(false)
		}
	}
	onNode := func(p *corev1.Pod) {
		podCondition(corev1.PodScheduled, corev1.ConditionTrue, "", "")(p)
		p.Spec.NodeName = "n1"
	}
	initialized := func(p *corev1.Pod) {
		initializes(p)
		p.Status.InitContainerStatuses[0].State = endedBy(0, "Completed", "")
	}
	explainEach(t, map[string]reportCase{
		"a sidecar that never passes its startup probe": {
			facts:  explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodPending, onNode, again(137, ptr.To(corev1.ContainerRestartPolicyAlways)))}},
			state:  explain.Running,
			says:   []string{"sidecar wait-for has ended 2 times in this pod, last with exit code 137, and runs again; the next container starts when it has passed its startup probe.", "change: kubectl logs job-1 -n ns -c wait-for --previous"},
			silent: []string{"started no container"},
		},
		"an init container that fails again and again": {
			facts:  explain.Facts{Job: job(onFailure), Pods: []corev1.Pod{pod(1, corev1.PodPending, onNode, again(1, nil))}},
			state:  explain.Running,
			says:   []string{"init container wait-for has ended 2 times in this pod, last with exit code 1, and runs again; the next container starts when it has succeeded."},
			silent: []string{"started no container"},
		},
		"an image that takes long": {
			facts: explain.Facts{
				Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodPending, onNode, initialized)},
				PodEvents: podEvents(kubeletEvent("Pulled", "Container image is there", 5*time.Minute), kubeletEvent("Pulling", `Pulling image "big"`, 4*time.Minute)),
			},
			state:  explain.Stuck,
			says:   []string{`node n1 has it, and has started only init containers; the pull of an image began 4m ago (Pulling image "big").`},
			silent: []string{"started no container"},
		},
		"an image that has been pulled": {
			facts: explain.Facts{
				Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodPending, onNode)},
				PodEvents: podEvents(kubeletEvent("Pulling", `Pulling image "big"`, 4*time.Minute), kubeletEvent("Pulled", "Successfully pulled", 3*time.Minute)),
			},
			state: explain.Stuck, says: []string{"has started no container yet."}, silent: []string{"the pull of an image"},
		},
		"a scheduler's sentence": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodPending, podCondition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, "0/1 nodes are available."))}},
			state: explain.Stuck, says: []string{"no node takes it: 0/1 nodes are available.\n"},
		},
		"a volume that another node has": {
			facts: pending(kubeletEvent("FailedAttachVolume", `Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) other`, time.Minute)),
			state: explain.Stuck, says: []string{"Its access mode lets one node use it at a time: the pods there have to end"},
		},
		"a volume that cannot be attached": {
			facts: pending(kubeletEvent("FailedAttachVolume", "timed out", time.Minute)),
			state: explain.Stuck, says: []string{"kubectl get volumeattachments"}, silent: []string{"access mode"},
		},
	})
}

// Not each failure is the program's: who counted it reads what it was, and what would leave it out.
func TestFailuresThatAreNotTheProgramsFault(t *testing.T) {
	exceeded := condition(batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
	spot := podCondition(corev1.DisruptionTarget, corev1.ConditionTrue, "EvictionByEvictionAPI", "Eviction API: evicting")
	ignores := func(j *batchv1.Job) {
		j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
			Action:          batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
		}}}
	}
	outOf := func(p *corev1.Pod) {
		p.Spec.NodeName, p.Status.Reason, p.Status.Message = "n1", "OutOfpods", "Pod was rejected: Node didn't have enough resource: pods"
	}
	created := []corev1.Event{kubeletEvent("SuccessfulCreate", "Created pod: job-x2", 4*time.Minute), kubeletEvent("SuccessfulCreate", "Created pod: job-x1", 8*time.Minute)}
	of := "kubectl get events -n ns --field-selector involvedObject.kind=Pod,involvedObject.name=job-x2"
	explainEach(t, map[string]reportCase{
		"a node that rejected the pod": {
			facts: explain.Facts{Job: job(exceeded), Pods: []corev1.Pod{pod(1, corev1.PodFailed, outOf)}},
			state: explain.Failed, says: []string{"change: Node n1 rejected pod job-1 before a container started.", "no rule of spec.podFailurePolicy matches it"},
		},
		"a node that was drained": {
			facts: explain.Facts{Job: job(exceeded), Pods: []corev1.Pod{pod(1, corev1.PodFailed, spot, failedWith(143, 3*time.Minute))}},
			state: explain.Failed, says: []string{"change: A disruption counts as a failure. In a new Job, a rule of spec.podFailurePolicy"},
		},
		"a node that was drained, which does not count": {
			facts: explain.Facts{Job: job(exceeded, ignores), Pods: []corev1.Pod{pod(1, corev1.PodFailed, spot, failedWith(143, 3*time.Minute))}},
			state: explain.Failed, silent: []string{"A disruption counts"},
		},
		"the program": {
			facts: explain.Facts{Job: job(exceeded), Pods: []corev1.Pod{pod(1, corev1.PodFailed, failedWith(1, 3*time.Minute))}, Events: created},
			state: explain.Failed, silent: []string{"A disruption counts", "rejected", "has no pods any more"},
		},
		"pods that are gone": {
			facts: explain.Facts{Job: job(exceeded), Events: created},
			state: explain.Failed, says: []string{"change: The Job has no pods any more, so nothing here says why they failed. A pod that was deleted, or evicted from its node, counts as failed, too.", of},
		},
		"pods that are gone, and the end is near": {
			facts: explain.Facts{Job: job(condition(batchv1.JobFailureTarget, "BackoffLimitExceeded", ""))},
			state: explain.Failing, says: []string{"change: The Job has no pods any more"}, silent: []string{"kubectl get events"},
		},
		"a deadline that passed while pods waited": {
			facts: explain.Facts{Job: job(condition(batchv1.JobFailed, "DeadlineExceeded", ""), func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = ptr.To[int64](60) }), Events: created},
			state: explain.Failed, says: []string{"(60) is how long it may be active, from status.startTime on: also while its pods wait for a node or an image.", "nothing here says what they did. ", of}, silent: []string{"evicted"},
		},
	})
}

// Pods are refused for many reasons, and the template of a Job cannot be changed.
func TestRefusalsOfPods(t *testing.T) {
	cases := map[string]reportCase{}
	for message, says := range map[string]string{
		`pods "j-1" is forbidden: failed quota: q: must specify limits.cpu`:                                        "change: Create a LimitRange with defaults in the namespace: the Job goes on by itself. Or set requests and limits in the pod template of a new Job.",
		`pods "j-1" is forbidden: unable to create new content in namespace ns because it is being terminated`:     "more: its namespace is being deleted: pods",
		`pods "j-1" is forbidden: no PriorityClass with name high was found`:                                       "change: Create the priority class; the Job goes on by itself.",
		`pods "j-1" is forbidden: pod rejected: RuntimeClass "kata" not found`:                                     "change: Create the runtime class; the Job goes on by itself.",
		`Pod "j-1" is invalid: spec.containers[0].resources.requests: must be less than or equal to memory limit.`: "memory limit. Last tried",
		`pods "j-1" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`:               "an admission policy denies it: pods",
		`pods "j-1" is forbidden: error looking up service account ns/abc: serviceaccount "abc" not found`:         "change: Create the service account; the Job goes on by itself.",
		`pods "j-1" is forbidden: maximum cpu usage per Container is 1, but limit is 2`:                            "change: Change what the message names; the Job tries again by itself.",
		`Internal error occurred: failed calling webhook "w": context deadline exceeded`:                           "change: Fix the webhook, or set its failurePolicy to Ignore; the Job goes on by itself.",
		`admission webhook "w" denied the request: no`:                                                             "the template of a Job cannot be changed, so create it anew.",
		`pods "j-1" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`:     "the namespace's Pod Security Standard forbids the pods",
		`etcdserver: request timed out`: "change: Change what the message names; the Job tries again by itself.",
	} {
		cases[message] = reportCase{facts: explain.Facts{Job: job(), Events: refused(message)}, state: explain.Blocked, says: []string{says}}
	}
	explainEach(t, cases)
}

// What else keeps a Job, or deletes it.
func TestOwnersClaimsAndQueues(t *testing.T) {
	wrongOwner := []corev1.Event{kubeletEvent("OwnerRefInvalidNamespace", `ownerRef [v1/Configuration, namespace: ns, name: s3, uid: 1] does not exist in namespace "ns"`, time.Second)}
	foreground := func(j *batchv1.Job) {
		j.DeletionTimestamp, j.Finalizers = ptr.To(before(5*time.Minute)), []string{metav1.FinalizerDeleteDependents}
	}
	queued := func(j *batchv1.Job) {
		j.Spec.Suspend, j.Labels = ptr.To(true), map[string]string{"kueue.x-k8s.io/queue-name": "team"}
	}
	withClaim := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "big"}}}}
	}
	ofPod := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	}
	complete := condition(batchv1.JobComplete, "CompletionsReached", "")
	explainEach(t, map[string]reportCase{
		"an owner in another namespace": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodRunning)}, Events: wrongOwner},
			state: explain.Running, says: []string{"The garbage collector deletes it with its pods if it has no other owner: ownerRef [v1/Configuration", "change: An owner has to be in the namespace of what it owns"},
		},
		"nothing is left, and the garbage collector does nothing": {
			facts: explain.Facts{Job: job(foreground)}, state: explain.Deleting,
			says: []string{"(--cascade=foreground). They are gone: see whether something else that it owns stays, what the garbage collector", "admission policy denies it the update"},
		},
		"a pod is left": {
			facts: explain.Facts{Job: job(foreground), Pods: []corev1.Pod{pod(1, corev1.PodRunning)}}, state: explain.Deleting,
			says: []string{"(--cascade=foreground).\n"}, silent: []string{"They are gone"},
		},
		"a claim of a pod that has ended": {
			facts: explain.Facts{Job: job(complete), Pods: []corev1.Pod{pod(1, corev1.PodSucceeded, withClaim)}}, state: explain.Complete,
			says: []string{"note: persistent volume claims: Pods that have ended still use their claims: if big is deleted, it stays"},
		},
		"a claim that a pod has made": {
			facts: explain.Facts{Job: job(complete), Pods: []corev1.Pod{pod(1, corev1.PodSucceeded, ofPod)}}, state: explain.Complete,
			says: []string{"if job-1-data is deleted"},
		},
		"no claim": {facts: explain.Facts{Job: job(complete), Pods: []corev1.Pod{pod(1, corev1.PodSucceeded)}}, state: explain.Complete, silent: []string{"claim"}},
		"a queue":  {facts: explain.Facts{Job: job(queued)}, state: explain.Suspended, says: []string{"kubectl describe workloads -n ns -l kueue.x-k8s.io/job-uid=" + string(uid(1))}},
	})
}
