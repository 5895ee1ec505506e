package explain_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/services/explain"
)

// Whatever state a Job is in: if its deletion was requested, the report says so, names each finalizer,
// and tells of no retry, no end and no new pod.
func TestAJobThatIsBeingDeletedInEveryState(t *testing.T) {
	failing := condition(batchv1.JobFailureTarget, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
	states := map[string][]func(*batchv1.Job){
		"new":        {notStarted, func(j *batchv1.Job) { j.CreationTimestamp = before(time.Second) }},
		"unmanaged":  {notStarted},
		"running":    {func(j *batchv1.Job) { j.Status.Active = 1 }},
		"suspended":  {notStarted, func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }},
		"paused":     {func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](0) }},
		"failing":    {failing},
		"failed":     {failing, condition(batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit")},
		"succeeding": {condition(batchv1.JobSuccessCriteriaMet, "CompletionsReached", "")},
		"complete": {condition(batchv1.JobComplete, "CompletionsReached", "Reached expected number of succeeded pods"), func(j *batchv1.Job) {
			j.Spec.TTLSecondsAfterFinished, j.Status.Succeeded, j.Status.CompletionTime = ptr.To[int32](600), 1, ptr.To(before(2*time.Minute))
		}},
	}
	pods := map[string][]corev1.Pod{
		"no pods": nil, "a pod that runs": {pod(1, corev1.PodRunning)}, "a pod that failed": {pod(1, corev1.PodFailed, failedWith(1, time.Second))},
		"a pod that cannot start": {pod(1, corev1.PodPending, waitingFor("ImagePullBackOff", ""))},
	}
	for state, change := range states {
		for name, pods := range pods {
			for _, finalizers := range [][]string{{"tool.example.com/hook"}, {"foregroundDeletion"}, {"orphan"}, {"foregroundDeletion", "tool.example.com/hook"}} {
				t.Run(state+", "+name+", "+strings.Join(finalizers, " and "), func(t *testing.T) {
					j := job(change...)
					j.DeletionTimestamp, j.Finalizers = ptr.To(before(time.Minute)), finalizers
					r, err := explain.Explain(explain.Facts{Job: j, Pods: pods, Now: now, Events: refused("exceeded quota")}, engine.DecideJob)
					if err != nil {
						t.Fatal(err)
					}
					if r.State != explain.Deleting || r.Retries != "" || len(r.Ends) > 0 {
						t.Errorf("state %s, retries %q, ends %q", r.State, r.Retries, r.Ends)
					}
					for _, f := range finalizers {
						if !strings.Contains(r.Headline, f) || !strings.Contains(strings.Join(r.Change, "\n"), f+": ") {
							t.Errorf("it does not say who removes %s", f)
						}
					}
					if finished := state == "failed" || state == "complete"; finished != strings.Contains(r.Headline, "Before that it was") {
						t.Error("it says wrongly whether the Job had finished")
					}
					if r.Next != nil && (r.Next.Steps[0].Kind == "create" || r.Next.Steps[0].Kind == "remove") {
						t.Errorf("next is %v", r.Next.Steps)
					}
					if t.Failed() {
						t.Log(flat(r))
					}
				})
			}
		}
	}
}

func TestAFinalizerKeepsAJobBeyondItsTimeToLive(t *testing.T) {
	j := job(condition(batchv1.JobComplete, "CompletionsReached", ""), func(j *batchv1.Job) {
		j.Spec.TTLSecondsAfterFinished, j.Finalizers = ptr.To[int32](180), []string{"tool.example.com/hook"}
		j.Status.Succeeded, j.Status.CompletionTime = 1, ptr.To(before(2*time.Minute))
	})
	r, err := explain.Explain(explain.Facts{Job: j, Now: now}, engine.DecideJob)
	if err != nil {
		t.Fatal(err)
	}
	if want := "its time to live is over. The finalizer tool.example.com/hook keeps it."; r.Next == nil || !strings.Contains(r.Next.Steps[0].Text, want) {
		t.Errorf("next is %v, want: %s", r.Next, want)
	}
}

func itself(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Reason, p.Status.Message = reason, message }
}

// What a pod says of itself comes first: the exit code is then only how its container was ended.
func TestAPodThatFailedSaysWhy(t *testing.T) {
	says := func(parts ...string) []string { return append([]string{"pod: job-1 failed"}, parts...) }
	failed := func(says, silent []string, change ...func(*corev1.Pod)) reportCase {
		return reportCase{facts: explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodFailed, change...)}}, state: explain.BackingOff, says: says, silent: silent}
	}
	ended := func(name, reason, message string, code int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message, FinishedAt: before(time.Second)},
		}}
	}
	start := func(p *corev1.Pod) { p.CreationTimestamp = before(5 * time.Second) }
	cases := map[string]reportCase{
		"an init container failed beside a sidecar": failed(says("container prepare ended with exit code 3"), []string{"proxy"}, func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "proxy", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}, {Name: "prepare"}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{ended("proxy", "Error", "", 143), ended("prepare", "Error", "", 3)}
		}),
		"out of memory": failed(says("container main ended with exit code 137 (OOMKilled)"), nil, func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{ended("main", "OOMKilled", "", 137)}
		}),
		"the kubelet has not seen its end": failed(says("exit code 137 (ContainerStatusUnknown: The container could not be located)"), nil, func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{ended("main", "ContainerStatusUnknown", "The container could not be located.", 137)}
		}),
		"disrupted": failed(says("it was disrupted (condition DisruptionTarget: EvictionByEvictionAPI: Eviction API: evicting); container main ended with exit code 143"), nil,
			podCondition(corev1.DisruptionTarget, corev1.ConditionTrue, "EvictionByEvictionAPI", "Eviction API: evicting"), failedWith(143, time.Second)),
		"without any reason": failed(says("it says no reason"), nil, start),
	}
	for _, reason := range []string{"Evicted", "DeadlineExceeded", "OutOfcpu", "NodeLost", "Preempting", "UnexpectedAdmissionError", "Terminated", "ReasonToCome"} {
		want := says(": " + reason + ": Because of\nit all; container main ended with exit code 137")
		want[1] = strings.ReplaceAll(want[1], "\n", " ")
		cases[reason+", with an exit code"] = failed(want, nil, itself(reason, "Because of\nit all. "), failedWith(137, time.Second))
		cases[reason+", without containers"] = failed(says(": "+reason+": Because"), []string{"exit code"}, itself(reason, "Because"), start)
	}
	explainEach(t, cases)
}

func TestAPodThatHasNotEndedSaysWhatItIs(t *testing.T) {
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(before(5 * time.Minute)) }
	onNode := func(p *corev1.Pod) { p.Spec.NodeName = "n1" }
	finalizer := func(p *corev1.Pod) { p.Finalizers = append(p.Finalizers, "example.com/archive") }
	lost := itself("NodeLost", "Node n1 which was running pod job-1 is unresponsive")
	explainEach(t, map[string]reportCase{
		"its node is lost": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodRunning, onNode, lost)}},
			state: explain.Running,
			says:  []string{"pod: job-1 status: NodeLost: Node n1 which"},
		},
		"its node is lost, and it is being deleted": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodRunning, deleted, onNode, lost)}},
			state: explain.Waiting,
			says:  []string{"still runs on node n1 (NodeLost: Node n1 which was"},
		},
		"it never had a node, and a finalizer keeps it": {
			facts:  explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodPending, deleted, finalizer)}},
			state:  explain.Waiting,
			says:   []string{"pod: job-1 terminating: should be gone since 5m. The finalizers batch.kubernetes.io/job-tracking, example.com/archive keep it."},
			silent: []string{"still runs"},
		},
		"it has ended, and a finalizer keeps it": {
			facts: explain.Facts{
				Job:  job(condition(batchv1.JobComplete, "CompletionsReached", "")),
				Pods: []corev1.Pod{pod(1, corev1.PodSucceeded, deleted, onNode, func(p *corev1.Pod) { p.Finalizers = []string{"example.com/archive"} })},
			},
			state:  explain.Complete,
			says:   []string{"pod: job-1 terminating: should be gone since 5m. The finalizer example.com/archive keeps it."},
			silent: []string{"still runs"},
		},
	})
}

// With OnFailure, restarts of all containers count against backoffLimit (upstream
// pastBackoffLimitOnFailure), and the report never says that a pod or two were too many.
func TestRestartsThatEndAJob(t *testing.T) {
	onFailure := func(limit, failed int32) func(*batchv1.Job) {
		return func(j *batchv1.Job) {
			j.Spec.Template.Spec.RestartPolicy, j.Spec.BackoffLimit, j.Status.Failed = corev1.RestartPolicyOnFailure, &limit, failed
		}
	}
	ended := condition(batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
	withSidecar := func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "proxy", RestartCount: 2}, {Name: "prepare"}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: 1}}
	}
	explainEach(t, map[string]reportCase{
		"the pod is gone": {
			facts:  explain.Facts{Job: job(onFailure(1, 1), ended)},
			state:  explain.Failed,
			says:   []string{"change: Restarts used up spec.backoffLimit (1), not failed pods", "the one that makes 1 fails the Job. There were 1 at least"},
			silent: []string{"is how many pods may fail"},
		},
		"with a limit of 0": {
			facts: explain.Facts{Job: job(onFailure(0, 0), ended)},
			state: explain.Failed,
			says:  []string{"Restarts used up spec.backoffLimit (0)", "the one that makes 1 fails the Job"},
		},
		"the pod still ends": {
			facts: explain.Facts{
				Job:  job(onFailure(3, 0), condition(batchv1.JobFailureTarget, "BackoffLimitExceeded", "Job has reached the specified backoff limit")),
				Pods: []corev1.Pod{pod(1, corev1.PodRunning, withSidecar)},
			},
			state:  explain.Failing,
			says:   []string{"There were 3 in the pods that exist (proxy 2, main 1)", "init containers and sidecars"},
			silent: []string{"retries: "},
		},
		"more pods failed than the limit": {
			facts: explain.Facts{Job: job(onFailure(1, 2), ended)},
			state: explain.Failed,
			says:  []string{"change: spec.backoffLimit (1) is how many pods may fail, and 2 have failed. With restartPolicy OnFailure, restarts of all"},
		},
		"of pods that are never restarted": {
			facts:  explain.Facts{Job: job(func(j *batchv1.Job) { j.Status.Failed = 4 }, ended)},
			state:  explain.Failed,
			says:   []string{"change: spec.backoffLimit (3) is how many pods may fail, and 4 have failed."},
			silent: []string{"estart"},
		},
		"a sidecar restarts": {
			facts: explain.Facts{Job: job(onFailure(4, 0)), Pods: []corev1.Pod{pod(1, corev1.PodRunning, withSidecar)}},
			state: explain.Running,
			says:  []string{"retries: 4 of 4 left; container restarts count, too: 3 so far (proxy 2, main 1), and the one that makes 4 fails the Job", "or containers have been restarted 4 times in all"},
		},
		"the limit is 0, and nothing has restarted": {
			facts: explain.Facts{Job: job(onFailure(0, 0)), Pods: []corev1.Pod{pod(1, corev1.PodRunning)}},
			state: explain.Running,
			says:  []string{"end: Failed (BackoffLimitExceeded) when one more pod fails, or containers have been restarted once"},
		},
	})
}

func TestAJobOfACronJobSaysWhetherItIsARun(t *testing.T) {
	owned := func(annotations map[string]string) *batchv1.Job {
		return job(func(j *batchv1.Job) {
			j.Annotations, j.OwnerReferences = annotations, []metav1.OwnerReference{{APIVersion: "batch/v1beta1", Kind: "CronJob", Name: "nightly", UID: uid(9), Controller: ptr.To(true)}}
		})
	}
	pods := []corev1.Pod{pod(1, corev1.PodRunning)}
	explainEach(t, map[string]reportCase{
		"of the schedule": {
			facts: explain.Facts{Job: owned(map[string]string{batchv1.CronJobScheduledTimestampAnnotation: "2026-05-04T11:50:00Z"}), Pods: pods},
			state: explain.Running, says: []string{"note: concurrencyPolicy: The Job is a run of the CronJob nightly."},
		},
		"that somebody asked for by annotation": {
			facts: explain.Facts{Job: owned(map[string]string{"jobpolicy.dev/run-now": "1"}), Pods: pods},
			state: explain.Running, says: []string{"note: concurrencyPolicy: The Job is a run of the CronJob nightly."},
		},
		"created by hand": {
			facts: explain.Facts{Job: owned(map[string]string{"cronjob.kubernetes.io/instantiate": "manual"}), Pods: pods},
			state: explain.Running, says: []string{"note: concurrencyPolicy: Somebody created the Job from the CronJob nightly. Its concurrencyPolicy does not count it"},
			silent: []string{"deletes this one"},
		},
	})
}
