package e2e

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/objects"
)

// warnings fails the test for each warning of the API server.
type warnings struct{ t *testing.T }

func (w warnings) HandleWarningHeader(_ int, _, text string) { w.t.Errorf("warning: %s", text) }

// The pods of every mode are admitted where the restricted standard is enforced.
func TestPodsAreRestricted(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	label := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted","pod-security.kubernetes.io/warn":"restricted"}}}`)
	objects.Patch(t, client.CoreV1().Namespaces(), namespace, string(label))
	config := rest.CopyConfig(plane.RESTConfig())
	config.WarningHandler = warnings{t}
	pods := kubernetes.NewForConfigOrDie(config).CoreV1().Pods(namespace)
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	tried := 0
	for _, variant := range []string{"coexist", "replace", "embedded", "embedded-replace", "shadow", "coexist-cert-manager", "replace-cert-manager"} {
		for _, object := range kustomize(t, "../../../deploy/kubernetes/"+variant) {
			if object.GetKind() != "Deployment" {
				continue
			}
			var deployment appsv1.Deployment
			must.Succeed(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment))
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: object.GetName()}, Spec: deployment.Spec.Template.Spec}
			pod.Spec.ServiceAccountName = "default" // that of the manifests is elsewhere
			if _, err := pods.Create(t.Context(), pod, dry); err != nil {
				t.Errorf("%s: %s: %v", variant, object.GetName(), err)
			}
			tried++
		}
	}
	if tried != 11 {
		t.Errorf("%d pods were tried, want 11", tried)
	}
	bad := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bad"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	if _, err := client.CoreV1().Pods(namespace).Create(t.Context(), bad, dry); err == nil {
		t.Error("a pod without restrictions was admitted: nothing is enforced here")
	}
}
