package e2e

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/test/kit/objects"
)

// A policy changes each new pod of a namespace, so that it does not count for its Job. Few pods are
// made, none of them stays, and one event says what was changed. Without the policy the Job completes.
func TestAdmissionThatChangesPodsStopsAJob(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ patch, want string }{
		"relabel": {
			`[JSONPatch{op: "replace", path: "/metadata/labels/batch.kubernetes.io~1controller-uid", value: "mesh"}]`,
			`metadata.labels[batch.kubernetes.io/controller-uid] is "mesh", want `,
		},
		"disown":     {`[JSONPatch{op: "remove", path: "/metadata/ownerReferences"}]`, "metadata.ownerReferences has no controller, want Job many"},
		"unfinalize": {`[JSONPatch{op: "remove", path: "/metadata/finalizers"}]`, "metadata.finalizers lacks batch.kubernetes.io/job-tracking"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			remove := alterPods(t, namespace, tc.patch)
			job := createJob(t, namespace, "many", batchv1.JobSpec{
				Completions: new(int32(10)), Parallelism: new(int32(10)), Template: shell("true", corev1.RestartPolicyNever),
			})
			var event corev1.Event
			eventually(t, "five pods were refused", func() (bool, string) {
				events, err := client.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=FailedCreate,involvedObject.uid=" + string(job.UID)})
				if err != nil || len(events.Items) == 0 {
					return false, fmt.Sprint(err)
				}
				if len(events.Items) > 1 {
					t.Fatalf("there are %d events FailedCreate, want one that is counted: %v", len(events.Items), events.Items)
				}
				event = events.Items[0]
				return event.Count >= 5, fmt.Sprintf("%d times: %s", event.Count, event.Message)
			})
			if !strings.Contains(event.Message, tc.want) || event.Count > 8 {
				t.Errorf("%d events %q, want 5 to 8 with %q", event.Count, event.Message, tc.want)
			}
			eventually(t, "the pods are gone", func() (bool, string) {
				pods, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
				return err == nil && len(pods.Items) == 0, fmt.Sprint(len(pods.Items), err)
			})
			remove()
			if job := waitFinished(t, namespace, "many"); !isComplete(job) || job.Status.Succeeded != 10 {
				t.Errorf("without the policy: %s", describe(job))
			}
		})
	}
}

// alterPods lets a policy patch the new pods of a namespace, and waits until it does. remove ends that.
func alterPods(t *testing.T, namespace, patch string) (remove func()) {
	t.Helper()
	ctx, all := t.Context(), client.AdmissionregistrationV1()
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			FailurePolicy: new(admissionregistrationv1.Fail), ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}},
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "of-a-job", Expression: `has(object.metadata.finalizers)`}},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{Expression: patch},
			}},
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: namespace},
	}
	objects.Create(t, all.MutatingAdmissionPolicies(), policy)
	objects.Create(t, all.MutatingAdmissionPolicyBindings(), binding)
	probe := markedPod(namespace)
	eventually(t, "the policy is in force", func() (bool, string) {
		pod, err := client.CoreV1().Pods(namespace).Create(ctx, probe.DeepCopy(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && (len(pod.OwnerReferences) == 0 || len(pod.Finalizers) == 0 || pod.Labels[batchv1.ControllerUidLabel] == "mesh"), fmt.Sprint(err)
	})
	return func() {
		if err := all.MutatingAdmissionPolicyBindings().Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if err := all.MutatingAdmissionPolicies().Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
}

// markedPod is a pod that shows whether a policy of alterPods is in force.
func markedPod(namespace string) *corev1.Pod {
	template := shell("true", corev1.RestartPolicyNever)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "probe-", Namespace: namespace, Labels: map[string]string{batchv1.ControllerUidLabel: "1"}, Finalizers: []string{batchv1.JobTrackingFinalizer},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "probe", UID: "1", Controller: new(true)}},
		},
		Spec: template.Spec,
	}
}
