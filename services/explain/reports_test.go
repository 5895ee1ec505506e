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
			says:   []string{"In pod job-1, init container wait-for has been running for 4m, and the next container starts when it has ended.", "change: kubectl logs job-1 -n ns -c wait-for"},
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
