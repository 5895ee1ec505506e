package e2e

import (
	"fmt"
	"os"
	"path/filepath"
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
	"jobpolicy.dev/test/kit/controlplane"
	"jobpolicy.dev/test/kit/objects"
)

const (
	policyAnnotation        = "jobpolicy.dev/policy"
	defaultPolicyAnnotation = "jobpolicy.dev/default-policy"
	lastValidPolicy         = "jobpolicy.dev/last-valid-policy"
)

// A policyWorld is a namespace of a control plane whose Jobs use policies.
type policyWorld struct {
	*testing.T
	plane     *cluster.Cluster
	client    *kubernetes.Clientset
	policies  dynamic.ResourceInterface
	namespace string
}

func newPolicyWorld(t *testing.T, plane *cluster.Cluster) *policyWorld {
	t.Helper()
	w := &policyWorld{T: t, plane: plane, client: kubernetes.NewForConfigOrDie(plane.RESTConfig())}
	w.namespace = newNamespaceOn(t, w.client)
	w.policies = dynamic.NewForConfigOrDie(plane.RESTConfig()).Resource(jobPolicies).Namespace(w.namespace)
	return w
}

func (w *policyWorld) put(name, spec string) {
	w.Helper()
	policy := policyOf(w.T, name, spec)
	if _, err := w.policies.Apply(w.Context(), name, policy, metav1.ApplyOptions{FieldManager: "e2e", Force: true}); err != nil {
		w.Fatal(err)
	}
}

func (w *policyWorld) remove(name string) {
	w.Helper()
	must.Succeed(w, w.policies.Delete(w.Context(), name, metav1.DeleteOptions{}))
}

// create creates a Job that has a policy; empty: none.
func (w *policyWorld) create(name, policy string, spec batchv1.JobSpec) *batchv1.Job {
	w.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	if policy != "" {
		job.Annotations = map[string]string{policyAnnotation: policy}
	}
	return objects.Create(w, w.client.BatchV1().Jobs(w.namespace), job)
}

// wantHeld waits for an event InvalidPolicy with a text, and checks that the Job has no pods.
func (w *policyWorld) wantHeld(job, text string) {
	w.Helper()
	eventually(w.T, "an event about the policy of "+job, func() (bool, string) {
		events, err := w.client.CoreV1().Events(w.namespace).List(w.Context(), metav1.ListOptions{FieldSelector: "reason=InvalidPolicy,involvedObject.name=" + job})
		if err != nil {
			return false, err.Error()
		}
		var texts []string
		for _, event := range events.Items {
			texts = append(texts, event.Message)
		}
		return strings.Contains(strings.Join(texts, "\n"), text), fmt.Sprint(texts)
	})
	if held := getJobOn(w.T, w.client, w.namespace, job); held.Status.StartTime != nil || held.Status.Active > 0 {
		w.Errorf("the Job has started, although its policy cannot be used: %s", describe(held))
	}
}

// wantGone waits until a Job is deleted.
func (w *policyWorld) wantGone(job string) {
	w.Helper()
	eventually(w.T, job+" is deleted", func() (bool, string) {
		jobs, err := w.client.BatchV1().Jobs(w.namespace).List(w.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + job})
		return err == nil && len(jobs.Items) == 0, "it exists"
	})
}

func (w *policyWorld) waitFinished(job string) {
	w.Helper()
	waitJobOn(w.T, w.client, w.namespace, job, "finished", func(job *batchv1.Job) bool { return isComplete(job) })
}

// wantStatus waits for a status of a policy.
func (w *policyWorld) wantStatus(name string, want func(status map[string]any) bool) {
	w.Helper()
	eventually(w.T, "status of policy "+name, func() (bool, string) {
		policy, err := w.policies.Get(w.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		status, _ := policy.Object["status"].(map[string]any)
		return status != nil && want(status), fmt.Sprint(status)
	})
}

// validity is the status and the message of the condition Valid.
func validity(status map[string]any) (valid, message string) {
	for _, c := range conditionsOf(&unstructured.Unstructured{Object: map[string]any{"status": status}}) {
		if c["type"] == "Valid" {
			return fmt.Sprint(c["status"]), fmt.Sprint(c["message"])
		}
	}
	return "", ""
}

func once(script string) batchv1.JobSpec {
	return batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: shell(script, corev1.RestartPolicyNever)}
}

// A Job has the options of the policy that it names, that it holds itself, or that its namespace names; a CronJob's
// template passes the name on.
func TestAJobHasTheOptionsOfItsPolicy(t *testing.T) {
	t.Parallel()
	servePolicies(t, plane)
	const short, long = "{job: {ttlSecondsAfterComplete: 1}}", "{job: {ttlSecondsAfterComplete: 3600}}"
	cases := map[string]struct{ policy, byDefault string }{
		"named":                   {policy: "short"},
		"default":                 {byDefault: "short"},
		"named, another default":  {policy: "short", byDefault: "long"},
		"in itself":               {policy: short},
		"in itself, and defaults": {policy: short, byDefault: "long"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPolicyWorld(t, plane)
			w.put("short", short)
			w.put("long", long)
			if tc.byDefault != "" {
				patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, defaultPolicyAnnotation, tc.byDefault)
				objects.Patch(t, client.CoreV1().Namespaces(), w.namespace, patch)
			}
			job := w.create("job", tc.policy, once("true"))
			checkExpired(t, watchJob(t, job), time.Second)
		})
	}
	t.Run("by a CronJob", func(t *testing.T) {
		t.Parallel()
		w := newCronWorld(t, client)
		p := &policyWorld{
			T: t, plane: plane, client: client, namespace: w.namespace,
			policies: dynamic.NewForConfigOrDie(plane.RESTConfig()).Resource(jobPolicies).Namespace(w.namespace),
		}
		p.put("short", short)
		made := cron("asked", onceAYear, "true")
		made.Spec.JobTemplate.Annotations = map[string]string{policyAnnotation: "short"}
		made.Annotations = map[string]string{policyAnnotation: "short"}
		w.create(t, made)
		p.wantStatus("short", func(status map[string]any) bool { return status["cronJobs"] == int64(1) })
		w.ask(t, "asked", "once")
		run := w.waitMade(t, "asked", 1)[0]
		p.wantGone(run.Name)
	})
}

// A Job that names a policy which does not exist starts when it does. The policy's status counts the Job while it runs, and
// a changed policy acts on Jobs that have finished.
func TestAPolicyThatComesLaterAndChanges(t *testing.T) {
	t.Parallel()
	servePolicies(t, plane)
	w := newPolicyWorld(t, plane)
	w.create("job", "later", once("sleep 15"))
	w.wantHeld("job", fmt.Sprintf("names the JobPolicy \"later\", which does not exist in namespace %q", w.namespace))
	w.put("later", "{job: {ttlSecondsAfterComplete: 3600}}")
	w.wantStatus("later", func(status map[string]any) bool {
		valid, message := validity(status)
		return status["jobs"] == int64(1) && status["observedGeneration"] == int64(1) && valid == "True" && message == ""
	})
	w.waitFinished("job")
	w.wantStatus("later", func(status map[string]any) bool { return status["jobs"] == int64(0) })
	w.put("later", "{job: {ttlSecondsAfterComplete: 1}}")
	w.wantGone("job")
}

// The API server begins to serve JobPolicies while the executor runs. A policy that the schema lets pass, and the executor
// cannot use, holds Jobs and CronJobs and says why. A Job that has started goes on with what it had, and so it does after a restart.
func TestPoliciesOnAControlPlaneOfTheirOwn(t *testing.T) {
	t.Parallel()
	own := controlplane.Start(t, cluster.Options{WithoutEngine: true, ExtraArgs: map[string][]string{cluster.Executor: executorArgs}})
	logsExecutor(t, own)
	w := newPolicyWorld(t, own)
	w.create("before", "policy", once("true"))
	crons := &cronWorld{client: w.client, namespace: w.namespace}
	asked := cron("asked", onceAYear, "true")
	asked.Annotations = map[string]string{policyAnnotation: "policy", runNow: "first"}
	crons.create(t, asked)
	w.create("free", "", once("true"))
	w.wantHeld("before", `names the JobPolicy "policy", which the API server does not serve`)
	w.waitFinished("free")

	lax := policyCRD(t)
	version := lax.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	version["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
	serveDefinition(t, own, lax)
	w.put("policy", "{job: {ttlSecondsAfterComplete: -1}}")
	const problem = "spec.job.ttlSecondsAfterComplete: expected a whole number from 0 to 2147483647, found -1"
	w.wantHeld("before", `names the JobPolicy "policy", which is invalid: `+problem)
	crons.wantHeld(t, "asked", 0)
	w.wantStatus("policy", func(status map[string]any) bool {
		valid, message := validity(status)
		return valid == "False" && message == problem && status["jobs"] == int64(1)
	})
	servePolicies(t, own)
	w.put("policy", "{job: {ttlSecondsAfterComplete: 3600}}")
	w.waitFinished("before")
	crons.waitAnswered(t, "asked")

	two := batchv1.JobSpec{Completions: new(int32(2)), Parallelism: new(int32(1)), Template: shell("sleep 3", corev1.RestartPolicyNever)}
	w.create("goes-on", "policy", two)
	waitJobOn(t, w.client, w.namespace, "goes-on", "active", func(job *batchv1.Job) bool { return job.Status.Active == 1 })
	w.remove("policy")
	w.waitFinished("goes-on")

	w.goOnAfterAKill(own, crons)
}

// goOnAfterAKill: what has started goes on with its last valid options although another process leads, which has never seen
// a valid policy: one that was deleted while no executor ran, and one that was changed before, and deleted while one ran.
// A CronJob that has had no status with its options waits.
func (w *policyWorld) goOnAfterAKill(own *cluster.Cluster, crons *cronWorld) {
	w.Helper()
	const before, after = "{job: {ttlSecondsAfterComplete: 3600}, cronJob: {staggerSeconds: 1}}", "{job: {ttlSecondsAfterComplete: 1800}}"
	// Statuses of policies are written every ten seconds, so pods do not end by a time: the Jobs could be over before the kill.
	release := filepath.Join(w.TempDir(), "go")
	two := batchv1.JobSpec{
		Completions: new(int32(2)), Parallelism: new(int32(1)),
		Template: shell("until [ -e "+release+" ]; do sleep 0.2; done", corev1.RestartPolicyNever),
	}
	jobs := map[string]string{"restarted": `{"job":{"ttlSecondsAfterComplete":3600}}`, "told": `{"job":{"ttlSecondsAfterComplete":1800}}`}
	w.put("policy", before)
	w.put("changed", before)
	w.create("restarted", "policy", two)
	w.create("told", "changed", two)
	fresh := cron("fresh", onceAYear, "true")
	fresh.Annotations = map[string]string{policyAnnotation: "policy"}
	crons.create(w.T, fresh)
	for name := range jobs {
		waitJobOn(w.T, w.client, w.namespace, name, "active", func(job *batchv1.Job) bool { return job.Status.Active == 1 })
	}
	w.wantStatus("policy", func(status map[string]any) bool { return status["cronJobs"] == int64(2) })
	w.put("changed", after)
	w.wantStatus("changed", func(status map[string]any) bool { return status["observedGeneration"] == int64(2) })
	w.remove("changed")
	waitJobOn(w.T, w.client, w.namespace, "told", "annotated", func(job *batchv1.Job) bool { return job.Annotations[lastValidPolicy] == jobs["told"] })

	if err := own.Kill(cluster.Executor); err != nil {
		w.Fatal(err)
	}
	w.remove("policy")
	if err := own.StartComponent(w.Context(), cluster.Executor); err != nil {
		w.Fatal(err)
	}
	crons.ask(w.T, "fresh", "first")
	crons.ask(w.T, "asked", "second")
	crons.waitAnswered(w.T, "asked")
	crons.wantHeld(w.T, "fresh", 0)
	must.Succeed(w, os.WriteFile(release, nil, 0o644))
	for name, want := range jobs {
		w.waitFinished(name)
		if got := getJobOn(w.T, w.client, w.namespace, name).Annotations[lastValidPolicy]; got != want {
			w.Errorf("Job %s: the last valid options are %s, want %s", name, got, want)
		}
	}
	w.put("policy", before)
	crons.waitAnswered(w.T, "fresh")
}

// wantHeld waits for an event InvalidPolicy about a CronJob, and checks that a run that is asked for has not started,
// and that there are as many as before.
func (w *cronWorld) wantHeld(t *testing.T, name string, before int) {
	t.Helper()
	w.waitEvent(t, name, "InvalidPolicy")
	if runs := w.there(t, name); len(runs) != before || w.cron(t, name).Annotations[runNow] == "" {
		t.Errorf("CronJob %s, whose policy cannot be used, has started a run: %v", name, runs)
	}
}
