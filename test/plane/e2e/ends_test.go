package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/proto/jobend"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/test/kit/objects"
)

// readEnd reads how a Job failed, as a controller does that has created it: from its condition. It also
// checks where the condition stands.
func readEnd(t *testing.T, job *batchv1.Job) *jobpolicyv1.JobEnd {
	t.Helper()
	var types []string
	var end *jobpolicyv1.JobEnd
	for _, c := range job.Status.Conditions {
		types = append(types, string(c.Type))
		if c.Type == jobend.ConditionType && c.Status == corev1.ConditionTrue {
			end, _ = jobend.Read(c.Reason, c.Message)
		}
	}
	if end == nil || !slices.Equal(types, []string{"FailureTarget", jobend.ConditionType, "Failed"}) && !slices.Equal(types, []string{"FailureTarget", jobend.ConditionType}) {
		t.Fatalf("end %v, conditions %v", end, types)
	}
	return end
}

// A simulation says by its exit code whether its input was bad, or whether it found no result and may be
// started again. Its parent must tell the two apart (KEP-4443): by the name of the rule.
func TestAParentTellsFailurePolicyRulesApart(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	on := func(code int32) batchv1.PodFailurePolicyRule {
		return batchv1.PodFailurePolicyRule{Action: batchv1.PodFailurePolicyActionFailJob, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
			Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{code},
		}}
	}
	for name, script := range map[string]string{"bad-input": "exit 2", "no-result": "exit 3"} {
		createJobWith(t, namespace, name, "{endCondition: true, failureRuleNames: [bad-input, no-result]}", batchv1.JobSpec{
			BackoffLimit: new(int32(9)), Template: shell(script, corev1.RestartPolicyNever),
			PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{on(2), on(3)}},
		})
	}
	for _, name := range []string{"bad-input", "no-result"} {
		job := waitFinished(t, namespace, name)
		end := readEnd(t, job)
		if end.GetClass() != jobpolicyv1.EndClass_END_CLASS_POLICY || end.GetPolicyRuleName() != name || end.GetPodName() != jobPods(t, job)[0].Name ||
			conditionReason(job, batchv1.JobFailed) != "PodFailurePolicy" {
			t.Errorf("Job %s ended by %v", name, end)
		}
	}
	out, err := kubectlJobpolicy(t, namespace, "explain", "job/no-result", "-o", "json")
	var explained struct {
		End struct{ Class, PolicyRuleName string }
	}
	if err != nil || json.Unmarshal([]byte(out), &explained) != nil || explained.End.Class != "Policy" || explained.End.PolicyRuleName != "no-result" {
		t.Errorf("explain says %s (%v)", out, err)
	}
	if out, err := kubectlJobpolicy(t, namespace, "explain", "job/no-result"); err != nil || !strings.Contains(out, "How it failed\n  - Policy: ") {
		t.Errorf("explain says for people %s (%v)", out, err)
	}
}

// A container that needed too much memory, and one that was killed because its pod was evicted, end with
// the same exit code. A retry helps only one of them (marin#4339). The test is the node of these pods.
func TestOutOfMemoryIsNotAnEviction(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	spec := batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: byHand()}
	disrupted := corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonTerminationByKubelet}
	for name, killed := range map[string]corev1.PodStatus{
		"memory":  killedBy("OOMKilled"),
		"evicted": {Phase: corev1.PodFailed, Reason: "Evicted", Conditions: []corev1.PodCondition{disrupted}, ContainerStatuses: killedBy("Error").ContainerStatuses},
	} {
		job := createJobWith(t, namespace, name, "{endCondition: true}", spec)
		pod := onePod(t, job)
		pod.Status = killed
		objects.UpdateStatus(t, client.CoreV1().Pods(namespace), pod)
	}
	want := map[string]jobpolicyv1.EndClass{"memory": jobpolicyv1.EndClass_END_CLASS_OUT_OF_MEMORY, "evicted": jobpolicyv1.EndClass_END_CLASS_INFRASTRUCTURE}
	for name, class := range want {
		if end := readEnd(t, waitFinished(t, namespace, name)); end.GetClass() != class || end.GetExitCode() != 137 || end.GetContainerName() != "main" {
			t.Errorf("Job %s ended by %v, want class %s", name, end, jobend.ClassName(class))
		}
	}
}

// killedBy is the status of a pod whose container was killed.
func killedBy(reason string) corev1.PodStatus {
	now := metav1.Now()
	return corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: reason, StartedAt: now, FinishedAt: now},
	}}}}
}

// onePod waits for the Job's first pod.
func onePod(t *testing.T, job *batchv1.Job) *corev1.Pod {
	t.Helper()
	var pods []corev1.Pod
	eventually(t, "a pod of "+job.Name, func() (bool, string) {
		pods = jobPods(t, job)
		return len(pods) > 0, describe(getJob(t, job.Namespace, job.Name))
	})
	return &pods[0]
}

// Somebody drains the node of a pod: the application has not failed.
func TestAnEvictedPodIsInfrastructure(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	job := createJobWith(t, namespace, "drained", "{endCondition: true}", batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: shell("sleep 60", corev1.RestartPolicyNever)})
	waitJob(t, namespace, "drained", "its pod runs", func(job *batchv1.Job) bool { return job.Status.Ready != nil && *job.Status.Ready == 1 })
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: onePod(t, job).Name}}
	must.Succeed(t, client.PolicyV1().Evictions(namespace).Evict(t.Context(), eviction))
	if end := readEnd(t, waitFinished(t, namespace, "drained")); end.GetClass() != jobpolicyv1.EndClass_END_CLASS_INFRASTRUCTURE || end.GetPodName() != eviction.Name {
		t.Errorf("the Job ended by %v", end)
	}
}

// Restarts of containers reach the limit before a pod has failed: the condition names the container.
func TestRestartsEndAJobByAContainer(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createJobWith(t, namespace, "restarting", "{endCondition: true}", batchv1.JobSpec{BackoffLimit: new(int32(1)), Template: shell("exit 5", corev1.RestartPolicyOnFailure)})
	end := readEnd(t, waitFinished(t, namespace, "restarting"))
	if end.GetClass() != jobpolicyv1.EndClass_END_CLASS_APPLICATION || end.GetContainerName() != "main" || end.GetExitCode() != 5 || end.GetPodName() == "" || end.GetTries() < 1 {
		t.Errorf("the Job ended by %v", end)
	}
}

// Of a Job that has not asked, the status is as ever.
func TestNobodyElseGetsTheCondition(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createJob(t, namespace, "plain", batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: shell("exit 1", corev1.RestartPolicyNever)})
	if job := waitFinished(t, namespace, "plain"); len(job.Status.Conditions) != 2 {
		t.Errorf("conditions %s", describe(job))
	}
}

// Both services are killed between the announcement of a failure and its end: what the condition says stays.
func TestRestartsDoNotForgetHowAJobFailed(t *testing.T) {
	namespace := newNamespace(t)
	job := createJobWith(t, namespace, "killed", "{endCondition: true}", batchv1.JobSpec{
		Parallelism: new(int32(2)), Completions: new(int32(2)), BackoffLimit: new(int32(0)), CompletionMode: new(batchv1.IndexedCompletion),
		Template: shell(`if [ $JOB_COMPLETION_INDEX = 0 ]; then sleep 2; exit 7; fi; trap "" TERM; while true; do sleep 1; done`, corev1.RestartPolicyNever),
	})
	before := waitJob(t, namespace, "killed", "it has failed", func(job *batchv1.Job) bool { return conditionReason(job, batchv1.JobFailureTarget) != "" })
	announced := readEnd(t, before)
	killAndStart(t, cluster.Executor)
	killAndStart(t, cluster.Engine)
	done := waitFinished(t, namespace, "killed")
	end := readEnd(t, done)
	if end.GetClass() != jobpolicyv1.EndClass_END_CLASS_APPLICATION || end.GetExitCode() != 7 || end.Index == nil || end.GetIndex() != 0 || end.GetTries() != 1 {
		t.Errorf("the Job ended by %v", end)
	}
	if end.String() != announced.String() {
		t.Errorf("announced as %v, ended as %v", announced, end)
	}
	if n := len(jobPods(t, job)); n == 0 {
		t.Error("the failed pod is gone")
	}
}
