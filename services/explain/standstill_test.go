package explain_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/explain"
)

// A controller that does not get on is told, although it writes no event.
func TestPodsThatKeepTheFinalizer(t *testing.T) {
	met := condition(batchv1.JobSuccessCriteriaMet, "CompletionsReached", "")
	long := pod(1, corev1.PodSucceeded, failedWith(0, 4*time.Minute))
	const kept = "Pods that ended more than 2m ago and still have the finalizer batch.kubernetes.io/job-tracking: 1."
	const webhook = "change: See whether the Job controller runs, and what it logs. A webhook or an admission policy that is asked about updates of pods may deny it"
	explainEach(t, map[string]reportCase{
		"it has written nothing":   {facts: explain.Facts{Job: job(), Pods: []corev1.Pod{long}}, state: explain.Completing, says: []string{kept, webhook}},
		"it has written a verdict": {facts: explain.Facts{Job: job(met, recordedPod), Pods: []corev1.Pod{long}}, state: explain.Completing, says: []string{kept, webhook}},
		"another pod still runs": {
			facts: explain.Facts{Job: job(func(j *batchv1.Job) { j.Spec.Parallelism, j.Spec.Completions = ptr.To[int32](2), ptr.To[int32](2) }), Pods: []corev1.Pod{long, pod(2, corev1.PodRunning)}},
			state: explain.Running, says: []string{kept, webhook},
		},
		"the pod has just ended": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodSucceeded, failedWith(0, time.Minute))}},
			state: explain.Completing, silent: []string{"still have the finalizer"},
		},
		"the pod was released": {
			facts: explain.Facts{Job: job(func(j *batchv1.Job) { j.Status.Succeeded = 1 }), Pods: []corev1.Pod{pod(1, corev1.PodSucceeded, failedWith(0, 4*time.Minute), func(p *corev1.Pod) { p.Finalizers = nil })}},
			state: explain.Completing, silent: []string{"still have the finalizer"},
		},
	})
}

// What comes next "now" for long is not coming.
func TestNothingComesNext(t *testing.T) {
	complete := condition(batchv1.JobComplete, "CompletionsReached", "")
	lives := func(seconds int32) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = &seconds }
	}
	written := func(ago time.Duration) func(*batchv1.Job) {
		return func(j *batchv1.Job) {
			condition(batchv1.JobFailureTarget, "BackoffLimitExceeded", "")(j)
			j.Status.Conditions[0].LastTransitionTime = before(ago)
		}
	}
	explainEach(t, map[string]reportCase{
		"a time to live that is over": {
			facts: explain.Facts{Job: job(complete, lives(1), func(j *batchv1.Job) { j.Status.Conditions[0].LastTransitionTime = before(3 * time.Minute) })},
			state: explain.Complete, says: []string{"change: Its time to live is over, and it is still there: see whether the controller of finished Jobs runs"},
		},
		"a time to live that is just over": {facts: explain.Facts{Job: job(complete, lives(100))}, state: explain.Complete, silent: []string{"still there"}},
		"a verdict, and nothing is left": {
			facts: explain.Facts{Job: job(written(3 * time.Minute))}, state: explain.Failing,
			says: []string{"No pod is left: it is Failed when the Job controller has written that.", "change: See whether the Job controller runs, and what it logs."},
		},
		"a new verdict": {facts: explain.Facts{Job: job(written(time.Second))}, state: explain.Failing, silent: []string{"See whether the Job controller runs"}},
	})
}

// An index that has failed is not tried again, so the Job cannot become Complete, and wants no pod for it.
func TestAnIndexHasFailed(t *testing.T) {
	indexed := func(j *batchv1.Job) {
		j.Spec.CompletionMode, j.Spec.Completions, j.Spec.Parallelism = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](3), ptr.To[int32](3)
		j.Spec.BackoffLimit, j.Spec.BackoffLimitPerIndex = ptr.To[int32](2147483647), ptr.To[int32](0)
		j.Status.FailedIndexes, j.Status.Failed = ptr.To("0"), 1
	}
	explainEach(t, map[string]reportCase{
		"the others run": {
			facts:  explain.Facts{Job: job(indexed), Pods: []corev1.Pod{pod(1, corev1.PodRunning, ofIndex("1")), pod(2, corev1.PodRunning, ofIndex("2"))}},
			state:  explain.Running,
			says:   []string{"The Job runs: 2 of 2 wanted pods are active", "end: Failed (FailedIndexes) when the indexes that are left have ended: 2"},
			silent: []string{"end: Complete when"},
		},
	})
	facts := &jobpolicyv1.JobFacts{WantedActive: ptr.To[int32](2), FailedIndexes: 1}
	r := explain.Recorded(explain.Facts{Job: job(indexed), Now: now}, &jobpolicyv1.Explanation{Facts: facts}, explain.Counts{Active: 2})
	if r.State != explain.Running || *r.Counts.Wanted != 2 {
		t.Errorf("recorded: %s, %d pods wanted: %s", r.State, *r.Counts.Wanted, r.Headline)
	}
	if r := explain.Recorded(explain.Facts{Job: job(indexed), Now: now}, nil, explain.Counts{Active: 2}); r.Counts.Wanted != nil {
		t.Errorf("recorded without a decision: %d pods wanted", *r.Counts.Wanted)
	}
}

// What is outside of the program and of the Job, and shows only in passing.
func TestWhatShowsOnlyInPassing(t *testing.T) {
	exceeded := condition(batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
	probed := func(p *corev1.Pod) {
		p.Spec.Containers = []corev1.Container{{Name: "main", LivenessProbe: &corev1.Probe{}}}
	}
	oom := containers(container("main", endedBy(137, "OOMKilled", "")))
	notReady := func(gates ...corev1.PodReadinessGate) corev1.Pod {
		return pod(1, corev1.PodRunning, podCondition(corev1.PodReady, corev1.ConditionFalse, "", ""), podCondition(corev1.ContainersReady, corev1.ConditionTrue, "", ""),
			func(p *corev1.Pod) { p.Spec.NodeName, p.Spec.ReadinessGates = "n1", gates })
	}
	orphan := func(ago time.Duration) func(*batchv1.Job) {
		return func(j *batchv1.Job) {
			j.DeletionTimestamp, j.Finalizers = ptr.To(before(ago)), []string{metav1.FinalizerOrphanDependents}
		}
	}
	explainEach(t, map[string]reportCase{
		"a liveness probe": {
			facts: explain.Facts{Job: job(exceeded), Pods: []corev1.Pod{pod(1, corev1.PodFailed, probed, failedWith(137, 3*time.Minute))}},
			state: explain.Failed, says: []string{"change: Exit code 137 is that of a signal from outside. Container main has a livenessProbe", "involvedObject.kind=Pod,involvedObject.name=job-1"},
		},
		"a liveness probe, and the program failed": {
			facts: explain.Facts{Job: job(exceeded), Pods: []corev1.Pod{pod(1, corev1.PodFailed, probed, failedWith(1, 3*time.Minute))}},
			state: explain.Failed, silent: []string{"livenessProbe"},
		},
		"a liveness probe, and too little memory": {
			facts: explain.Facts{Job: job(exceeded), Pods: []corev1.Pod{pod(1, corev1.PodFailed, probed, oom)}},
			state: explain.Failed, silent: []string{"livenessProbe"},
		},
		"no liveness probe": {
			facts: explain.Facts{Job: job(exceeded), Pods: []corev1.Pod{pod(1, corev1.PodFailed, failedWith(137, 3*time.Minute))}},
			state: explain.Failed, silent: []string{"livenessProbe"},
		},
		"a node that is not heard of": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{notReady()}},
			state: explain.Running, says: []string{"pod: job-1 status: its containers are ready, but the pod is not: its node n1 may be lost"},
		},
		"a gate of readiness": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{notReady(corev1.PodReadinessGate{ConditionType: "example.com/gate"})}},
			state: explain.Running, silent: []string{"may be lost"},
		},
		"an image without a name": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodPending, waitingFor("InvalidImageName", "no"))}},
			state: explain.Stuck, says: []string{"change: Correct the name of the image"},
		},
		"an image that is never pulled": {
			facts: explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodPending, waitingFor("ErrImageNeverPull", "no"))}},
			state: explain.Stuck, says: []string{"change: Load the image on the node"},
		},
		"an orphan, and the garbage collector does nothing": {facts: explain.Facts{Job: job(orphan(5 * time.Minute))}, state: explain.Deleting, says: []string{"That waits for nothing else: see"}},
		"an orphan": {facts: explain.Facts{Job: job(orphan(5 * time.Second))}, state: explain.Deleting, silent: []string{"waits for nothing else"}},
	})
}

// The log that helps is that of the container that failed; a pod that its node rejected has none.
func TestTheCommandThatShowsMoreOfAFailedPod(t *testing.T) {
	validation := func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{container("istio-validation", endedBy(126, "Error", ""))}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{container("main", corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}})}
	}
	for want, change := range map[string]func(*corev1.Pod){
		"kubectl logs job-1 -n ns -c istio-validation": validation,
		"kubectl logs job-1 -n ns":                     failedWith(1, time.Second),
		"kubectl describe pod job-1 -n ns":             func(p *corev1.Pod) { p.Status.Reason, p.Status.Message = "OutOfcpu", "Pod was rejected: no cpu" },
	} {
		facts := explain.Facts{Job: job(), Pods: []corev1.Pod{pod(1, corev1.PodFailed, change)}, Now: now}
		r, err := explain.Explain(facts, engine.DecideJob)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Pods) != 1 || r.Pods[0].Change != want {
			t.Errorf("pods %+v, want the command %q", r.Pods, want)
		}
	}
}
