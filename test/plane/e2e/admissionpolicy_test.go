package e2e

import (
	"context"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/test/kit/objects"
)

// An admission policy that refuses to let finalizers go holds a Job up, and no longer
// than it is there. The executor reads the pod after the refusal, because it may be
// gone.
func TestARefusedReleaseIsTriedAgain(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	binding := refuseReleases(t, namespace)
	job := createJob(t, namespace, "held", batchv1.JobSpec{Template: shell("true", corev1.RestartPolicyNever)})
	eventually(t, "the executor reads the pod that it may not release", func() (bool, string) {
		a, err := readAudit(auditLog)
		if err != nil {
			return false, err.Error()
		}
		for _, pod := range jobPods(t, job) {
			if a.used["/pods get "+pod.Name] {
				return true, ""
			}
		}
		return false, describe(getJob(t, namespace, "held"))
	})
	if held := getJob(t, namespace, "held"); held.Status.CompletionTime != nil || held.Status.UncountedTerminatedPods == nil {
		t.Errorf("the Job has ended, or its pod is not recorded, although its pod has its finalizer: %s", describe(held))
	}
	objects.Delete(t, client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings(), binding, metav1.DeleteOptions{})
	if done := waitFinished(t, namespace, "held"); done.Status.Succeeded != 1 || len(jobPods(t, job)) != 1 {
		t.Errorf("one pod ran: %s", describe(done))
	}
	removeFinalizer(t, namespace, "probe")
}

// refuseReleases makes the API server refuse to take the tracking finalizer from a pod
// in a namespace, waits until it does, and returns the name of the binding.
func refuseReleases(t *testing.T, namespace string) string {
	t.Helper()
	policies, name := client.AdmissionregistrationV1(), "no-release-"+namespace
	objects.Create(t, policies.ValidatingAdmissionPolicies(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				},
			}}},
			Validations: []admissionv1.Validation{{
				Expression: fmt.Sprintf("oldObject.metadata.?finalizers.orValue([]).all(f, f != %q || f in object.metadata.?finalizers.orValue([]))", batchv1.JobTrackingFinalizer),
				Message:    "the finalizer stays",
			}},
		},
	})
	t.Cleanup(func() { deletePolicy(t, name) })
	objects.Create(t, policies.ValidatingAdmissionPolicyBindings(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			},
		},
	})
	probe := probePod(t, namespace)
	eventually(t, "the policy is in force", func() (bool, string) {
		_, err := client.CoreV1().Pods(namespace).Update(t.Context(), probe, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsInvalid(err), fmt.Sprint(err)
	})
	return name
}

// probePod creates a pod of another controller with the finalizer, and returns it
// without.
func probePod(t *testing.T, namespace string) *corev1.Pod {
	t.Helper()
	pod := finalizedPod("probe")
	pod.OwnerReferences = []metav1.OwnerReference{ofTraining}
	probe := objects.Create(t, client.CoreV1().Pods(namespace), pod)
	probe.Finalizers = nil
	return probe
}

// deletePolicy deletes a policy and its binding.
func deletePolicy(t *testing.T, name string) {
	ctx, policies := context.Background(), client.AdmissionregistrationV1()
	for _, err := range []error{
		policies.ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{}),
		policies.ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{}),
	} {
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete policy: %v", err)
		}
	}
}
