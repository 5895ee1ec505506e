package clients

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/proto/jobend"
	"jobpolicy.dev/test/kit/controlplane"
	"jobpolicy.dev/test/kit/objects"
)

// endsManifest is a JobSet whose rules go by typed ends. A failure that matches none of them ends it with the reason
// ReachedMaxRestarts. Nobody schedules its pod: the test says how it ends.
const endsManifest = `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: NAME}
spec:
  failurePolicy:
    maxRestarts: 0
    rules:
    - {name: memory, action: RestartJobSetAndIgnoreMaxRestarts, onJobFailureMessagePatterns: ['^jobpolicy.dev/class=OutOfMemory$']}
    - {name: application, action: FailJobSet, onJobFailureMessagePatterns: ['^jobpolicy.dev/class=Application$']}
    - {name: input, action: RestartJobAndIgnoreMaxRestarts, onJobFailureMessagePatterns: ['^jobpolicy.dev/policyRuleName=bad-input$']}
  replicatedJobs:
  - name: a
    template:
      metadata: {annotations: {jobpolicy.dev/policy: '{job: {endCondition: true, endConditionFailures: 1, failureRuleNames: [bad-input]}}'}}
      spec:
        managedBy: MANAGER
        backoffLimit: 0
        podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [2]}}]}
        template: {spec: {schedulerName: nobody, restartPolicy: Never, containers: [{name: main, image: none}]}}
`

const (
	restarted    = "restarted"     // By the rule memory.
	jobRestarted = "Job restarted" // By the rule input.
	failedByRule = "FailJobSetFailurePolicyAction"
	noRule       = "ReachedMaxRestarts"
	// theWords are those of a rule. Where they are only text, no rule matches them.
	theWords = "jobpolicy.dev/class=OutOfMemory"
)

// A rule of JobSet is matched by the typed end of a Job, and never by a text that has its words.
func TestJobSetMatchesTypedEnds(t *testing.T) {
	jobsetWithEngine.check(t, jobsetWithEngine.chosen("typed-ends"))
	js := startEnds(t, startPlane(t))
	evicted := ended(137, "Error", "")
	evicted.Reason = "Evicted"
	evicted.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "TerminationByKubelet"}}
	for name, tc := range map[string]struct {
		pod  corev1.PodStatus
		want string
	}{
		"memory":      {ended(137, "OOMKilled", ""), restarted},
		"application": {ended(3, "Error", ""), failedByRule},
		"killed":      {ended(137, "Error", ""), failedByRule},
		"input":       {ended(2, "Error", ""), jobRestarted},
		"evicted":     {evicted, noRule},
		"said":        {ended(3, "Error", theWords+" policyRuleName=bad-input"), failedByRule},
	} {
		js.create(t, name, batchv1.JobControllerName)
		js.end(t, name, tc.pod)
		js.becomes(t, name, tc.want)
	}
	if message := js.child(t, "said", jobend.ConditionType).Message; !strings.Contains(message, theWords) {
		t.Errorf("the typed end of said does not have the words of its pod: %s", message)
	}

	js.create(t, "foreign", "example.com/other")
	js.fail(t, "foreign", theWords)
	js.becomes(t, "foreign", noRule)
}

// While the executor has no engine, no JobSet goes on because of a pod that has failed. When the engine is back, the rule of its end
// applies.
func TestJobSetWaitsForTypedEnds(t *testing.T) {
	jobsetWithEngine.check(t, jobsetWithEngine.chosen("ends-away"))
	plane := startPlane(t)
	js := startEnds(t, plane)
	js.create(t, "memory", batchv1.JobControllerName)
	js.create(t, "application", batchv1.JobControllerName)
	js.pod(t, "memory")
	js.pod(t, "application")
	must.Succeed(t, plane.Kill(cluster.Engine))
	lost := time.Now()
	js.end(t, "memory", ended(137, "OOMKilled", ""))
	js.end(t, "application", ended(3, "Error", ""))
	for time.Since(lost) < away {
		if memory, application := js.state("memory"), js.state("application"); memory != "" || application != "" {
			t.Fatalf("without the engine: memory is %q, application is %q; want nothing", memory, application)
		}
		time.Sleep(200 * time.Millisecond)
	}
	must.Succeed(t, plane.StartComponent(t.Context(), cluster.Engine))
	back := time.Now()
	js.becomes(t, "memory", restarted)
	js.becomes(t, "application", failedByRule)
	took := time.Since(back)
	t.Logf("both went on %.1f s after the engine came back", took.Seconds())
	if took > goesOn {
		t.Errorf("that took longer than %s", goesOn)
	}
}

// An engine that takes one class for another is found by what JobSet does, and by the conformance kit.
func TestJobSetFindsAWrongClass(t *testing.T) {
	jobsetWithEngine.check(t, jobsetWithEngine.chosen("wrong-class"))
	const class = "return jobpolicyv1.EndClass_END_CLASS_"
	wrong := defect{"engine/endclass.go", class + "OUT_OF_MEMORY", class + "APPLICATION"}.build(t)
	js := startEnds(t, startPlaneWith(t, cluster.Options{ControllerManagerControllers: withBuiltIn, EnginePath: wrong}))
	js.create(t, "memory", batchv1.JobControllerName)
	js.end(t, "memory", ended(137, "OOMKilled", ""))
	js.becomes(t, "memory", failedByRule) // With the engine as it is: restarted.
	if out, err := startEngine(t, wrong).conformance(t); err == nil || !strings.Contains(out, "CASES") {
		t.Errorf("the conformance kit accepts it, or did not ask it (%v):\n%s", err, out)
	}
}

// ends are JobSets of endsManifest in a namespace.
type ends struct {
	jobsets dynamic.ResourceInterface
	kube    kubernetes.Interface
}

const endsNamespace = "ends"

// startEnds gives a control plane to our controllers, and starts JobSet that reads typed ends.
func startEnds(t *testing.T, plane *cluster.Cluster) ends {
	t.Helper()
	ours.takeOver(t, plane)
	prepareJobSet(t, plane, "jobset").asking(startEngine(t, engineProgram(t))).startAndMeasure(t, plane)
	kube := kubernetes.NewForConfigOrDie(plane.RESTConfig())
	makeNamespace(t, kube, endsNamespace)
	return ends{dynamic.NewForConfigOrDie(plane.RESTConfig()).Resource(jobset.objects[0]).Namespace(endsNamespace), kube}
}

// create makes a JobSet whose Job is managed by somebody.
func (js ends) create(t *testing.T, name, manager string) {
	t.Helper()
	manifest := strings.NewReplacer("NAME", name, "MANAGER", manager).Replace(endsManifest)
	if _, err := js.jobsets.Create(t.Context(), parseManifests(t, []byte(manifest))[0], metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// pod waits for the pod of a JobSet.
func (js ends) pod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	ofJobSet := metav1.ListOptions{LabelSelector: "jobset.sigs.k8s.io/jobset-name=" + name}
	var pods *corev1.PodList
	controlplane.Eventually(t, "a pod of "+name, func() (bool, string) {
		var err error
		pods, err = js.kube.CoreV1().Pods(endsNamespace).List(t.Context(), ofJobSet)
		if err != nil {
			return false, err.Error()
		}
		return len(pods.Items) == 1, js.state(name)
	})
	return &pods.Items[0]
}

// end lets the pod of a JobSet end.
func (js ends) end(t *testing.T, name string, status corev1.PodStatus) {
	t.Helper()
	pod := js.pod(t, name)
	pod.Status = status
	objects.UpdateStatus(t, js.kube.CoreV1().Pods(endsNamespace), pod)
}

// fail is what another controller writes that fails the Job of a JobSet with a message.
func (js ends) fail(t *testing.T, name, message string) {
	t.Helper()
	controlplane.Eventually(t, "the Job of "+name+" is failed", func() (bool, string) {
		job, err := js.kube.BatchV1().Jobs(endsNamespace).Get(t.Context(), name+"-a-0", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		now := metav1.Now()
		job.Status.StartTime = &now
		for _, kind := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
			job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
				Type: kind, Status: corev1.ConditionTrue, Reason: "Other", Message: message, LastTransitionTime: now,
			})
		}
		if _, err = js.kube.BatchV1().Jobs(endsNamespace).UpdateStatus(t.Context(), job, metav1.UpdateOptions{}); err != nil {
			return false, err.Error()
		}
		return true, ""
	})
}

// child is a condition of the Job of a JobSet.
func (js ends) child(t *testing.T, name string, kind batchv1.JobConditionType) batchv1.JobCondition {
	t.Helper()
	job := objects.Get(t, js.kube.BatchV1().Jobs(endsNamespace), name+"-a-0")
	for _, c := range job.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	t.Fatalf("the Job of %s has no condition %s: %+v", name, kind, job.Status.Conditions)
	return batchv1.JobCondition{}
}

// state is why a JobSet has failed, or what of it was restarted; empty if neither happened.
func (js ends) state(name string) string {
	o, err := js.jobsets.Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	if restarts, _, _ := unstructured.NestedInt64(o.Object, "status", "restarts"); restarts > 0 {
		return restarted
	}
	for _, group := range fieldsOf(o, "replicatedJobsStatus") {
		if restarts, _, _ := unstructured.NestedSlice(group, "jobRestarts"); slices.Contains(restarts, any(int64(1))) {
			return jobRestarted
		}
	}
	for _, c := range fieldsOf(o, "conditions") {
		if c["type"] == "Failed" && c["status"] == "True" {
			return fmt.Sprint(c["reason"])
		}
	}
	return ""
}

// fieldsOf are the entries of a list in a status.
func fieldsOf(o *unstructured.Unstructured, list string) []map[string]any {
	var all []map[string]any
	entries, _, _ := unstructured.NestedSlice(o.Object, "status", list)
	for _, entry := range entries {
		if fields, ok := entry.(map[string]any); ok {
			all = append(all, fields)
		}
	}
	return all
}

func (js ends) becomes(t *testing.T, name, want string) {
	t.Helper()
	controlplane.Eventually(t, name+" becomes "+want, func() (bool, string) {
		got := js.state(name)
		if got != "" && got != want {
			t.Fatalf("%s becomes %s, want %s", name, got, want)
		}
		return got == want, got
	})
}

// ended is the status of a pod whose container has ended. message is its termination message.
func ended(exitCode int32, reason, message string) corev1.PodStatus {
	now := metav1.Now()
	return corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode, Reason: reason, Message: message, StartedAt: now, FinishedAt: now},
	}}}}
}
