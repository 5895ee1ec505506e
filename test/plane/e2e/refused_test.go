package e2e

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/test/kit/objects"
)

// refusalText is the message of the policies.
const refusalText = "the token cannot be injected"

var (
	aDryRun  = []string{metav1.DryRunAll}
	anyPatch = []byte(`{"metadata":{"annotations":{"example.com/probe":"1"}}}`)
)

// A refusal is what a ValidatingAdmissionPolicy refuses in a namespace.
type refusal struct {
	group, resource string
	operation       admissionv1.OperationType
	unless          string // An expression; empty: all is refused.
}

// forbid creates the policy of a refusal, and waits until probe, which tries what it refuses, is refused. It returns the
// function that removes the policy.
func forbid(t *testing.T, namespace string, what refusal, probe func(context.Context) error) (allow func()) {
	t.Helper()
	policies, name := client.AdmissionregistrationV1(), metav1.ObjectMeta{Name: "refuse-" + namespace}
	objects.Create(t, policies.ValidatingAdmissionPolicies(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: name,
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{what.operation},
					Rule:       admissionv1.Rule{APIGroups: []string{what.group}, APIVersions: []string{"v1"}, Resources: []string{what.resource}},
				}}},
			},
			Validations: []admissionv1.Validation{{Expression: cmp.Or(what.unless, "false"), Message: refusalText}},
		},
	})
	objects.Create(t, policies.ValidatingAdmissionPolicyBindings(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: name,
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	})
	allow = func() {
		for _, err := range []error{
			policies.ValidatingAdmissionPolicyBindings().Delete(context.Background(), name.Name, metav1.DeleteOptions{}),
			policies.ValidatingAdmissionPolicies().Delete(context.Background(), name.Name, metav1.DeleteOptions{}),
		} {
			if err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		}
	}
	t.Cleanup(allow)
	eventually(t, "the policy is in force", func() (bool, string) {
		err := probe(t.Context())
		return err != nil && strings.Contains(err.Error(), refusalText), fmt.Sprint(err)
	})
	return allow
}

// waitRefusal waits for the one event about a refused write, and until explain tells of the refusal.
func waitRefusal(t *testing.T, namespace, object, reason string, texts ...string) {
	t.Helper()
	name := object[strings.Index(object, "/")+1:]
	eventually(t, "the event "+reason+" on "+object, func() (bool, string) {
		list, err := client.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name + ",reason=" + reason})
		if err != nil || len(list.Items) == 0 {
			return false, fmt.Sprint(err)
		}
		if event := list.Items[0]; event.Type != corev1.EventTypeWarning || !strings.Contains(event.Message, refusalText) || len(list.Items) > 1 {
			t.Errorf("%d events, one of them %s %s: %s", len(list.Items), event.Type, event.Reason, event.Message)
		}
		return true, ""
	})
	eventually(t, "explain tells of "+object, func() (bool, string) {
		out, err := kubectlJobpolicy(t, namespace, "explain", object)
		for _, text := range append(texts, refusalText) {
			if err != nil || !strings.Contains(out, text) || strings.Contains(out, "- now:") {
				return false, fmt.Sprintf("%v, want %q:\n%s", err, text, out)
			}
		}
		t.Log(out)
		return true, ""
	})
}

// An admission policy refuses what the executor writes. The Job or CronJob has an event that says so, explain
// says so, and once the policy is gone, it goes on.
func TestARefusedWriteIsToldOf(t *testing.T) {
	t.Parallel()
	elsewhere := func(name string) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{ManagedBy: new("example.com/probe"), Template: shell("true", corev1.RestartPolicyNever)}}
	}
	t.Run("finalizer", func(t *testing.T) {
		t.Parallel()
		namespace := newNamespace(t)
		gated := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: shell("true", corev1.RestartPolicyNever).Spec}
		gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/gate"}}
		pods := client.CoreV1().Pods(namespace)
		objects.Create(t, pods, gated)
		allow := forbid(t, namespace, refusal{resource: "pods", operation: admissionv1.Update}, func(ctx context.Context) error {
			_, err := pods.Patch(ctx, "probe", types.MergePatchType, anyPatch, metav1.PatchOptions{DryRun: aDryRun})
			return err
		})
		createJob(t, namespace, "quick", batchv1.JobSpec{Template: shell("true", corev1.RestartPolicyNever)})
		waitRefusal(t, namespace, "job/quick", "FailedRemoveFinalizer", "The Job has succeeded", "refuses to remove the finalizer of 1 pod, since",
			"when the API server no longer refuses it:", "Let the policy that the message names")
		allow()
		waitFinished(t, namespace, "quick")
	})
	t.Run("status", func(t *testing.T) {
		t.Parallel()
		namespace := newNamespace(t)
		jobs := client.BatchV1().Jobs(namespace)
		objects.Create(t, jobs, elsewhere("probe"))
		allow := forbid(t, namespace, refusal{group: "batch", resource: "jobs/status", operation: admissionv1.Update}, func(ctx context.Context) error {
			_, err := jobs.Patch(ctx, "probe", types.MergePatchType, []byte(`{"status":{"active":1}}`), metav1.PatchOptions{DryRun: aDryRun}, "status")
			return err
		})
		createJob(t, namespace, "quick", batchv1.JobSpec{Template: shell("true", corev1.RestartPolicyNever)})
		waitRefusal(t, namespace, "job/quick", "FailedUpdateStatus", "refuses to write the Job's status, since")
		allow()
		waitFinished(t, namespace, "quick")
	})
	t.Run("deletion by time to live", func(t *testing.T) {
		t.Parallel()
		namespace := newNamespace(t)
		jobs := client.BatchV1().Jobs(namespace)
		objects.Create(t, jobs, elsewhere("probe"))
		allow := forbid(t, namespace, refusal{group: "batch", resource: "jobs", operation: admissionv1.Delete}, func(ctx context.Context) error {
			return jobs.Delete(ctx, "probe", metav1.DeleteOptions{DryRun: aDryRun})
		})
		createJob(t, namespace, "quick", batchv1.JobSpec{TTLSecondsAfterFinished: new(int32(0)), Template: shell("true", corev1.RestartPolicyNever)})
		waitRefusal(t, namespace, "job/quick", "FailedDelete", "The Job completed", "refuses to delete the Job, since", "when the API server no longer refuses it: the Job is deleted")
		allow()
		eventually(t, "the Job is deleted", func() (bool, string) {
			_, err := jobs.Get(t.Context(), "quick", metav1.GetOptions{})
			return apierrors.IsNotFound(err), fmt.Sprint(err)
		})
	})
	for resource, reason := range map[string]string{"cronjobs": "FailedUpdate", "cronjobs/status": "FailedUpdateStatus"} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()
			refuseCronJob(t, resource, reason)
		})
	}
}

// refuseCronJob asks for a run by hand. It starts, and the API server refuses to take the annotation away,
// or to list the run.
func refuseCronJob(t *testing.T, resource, reason string) {
	namespace := newNamespace(t)
	crons := client.BatchV1().CronJobs(namespace)
	create := func(name string, annotations map[string]string) {
		objects.Create(t, crons, &batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
			Spec: batchv1.CronJobSpec{
				Schedule: "0 0 1 1 *", Suspend: new(true),
				JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{ManagedBy: new(executor.ManagedBy), Template: shell("sleep 3600", corev1.RestartPolicyNever)}},
			},
		})
	}
	create("probe", nil)
	patch, subresources := anyPatch, strings.Split(resource, "/")[1:]
	if len(subresources) > 0 {
		patch = []byte(`{"status":{"lastScheduleTime":"2026-01-01T00:00:00Z"}}`)
	}
	allow := forbid(t, namespace, refusal{group: "batch", resource: resource, operation: admissionv1.Update}, func(ctx context.Context) error {
		_, err := crons.Patch(ctx, "probe", types.MergePatchType, patch, metav1.PatchOptions{DryRun: aDryRun}, subresources...)
		return err
	})
	create("by-hand", map[string]string{"jobpolicy.dev/managed-by": executor.ManagedBy, "jobpolicy.dev/run-now": "once"})
	waitRefusal(t, namespace, "cronjob/by-hand", reason, "The API server refuses to")
	allow()
	eventually(t, "the annotation is gone, and the run is listed", func() (bool, string) {
		cron, err := crons.Get(t.Context(), "by-hand", metav1.GetOptions{})
		return err == nil && cron.Annotations["jobpolicy.dev/run-now"] == "" && len(cron.Status.Active) == 1, fmt.Sprint(cron, err)
	})
}
