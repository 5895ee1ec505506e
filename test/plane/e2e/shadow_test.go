package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/objects"
)

// An executor in shadow mode, with the rights that the manifests give it, which are to
// read, finds no difference while the built-in controllers run Jobs and a CronJob. When
// they are killed, it reports the Job that nobody runs, until they are back.
func TestAShadowBesideTheBuiltinControllers(t *testing.T) {
	t.Parallel()
	beside, client := startBesidePlane(t, "--replace-builtin=false")
	shadow := startExecutorAs(t, readOnly(t, beside, client), "--engine=embedded", "--mode=shadow", "--shadow-rest=2s")
	eventually(t, "the shadow is ready", shadow.ready)
	namespace := newNamespaceOn(t, client)
	create := func(name string, spec batchv1.JobSpec) {
		t.Helper()
		createJobOn(t, client, namespace, name, spec)
	}
	finished := func(name string) {
		t.Helper()
		waitJobOn(t, client, namespace, name, "finished", isFinished)
	}
	create("some", batchv1.JobSpec{Completions: new(int32(6)), Parallelism: new(int32(2)), Template: shell("sleep 0.3", corev1.RestartPolicyNever)})
	create("fails", batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: shell("false", corev1.RestartPolicyNever)})
	create("suspended", batchv1.JobSpec{Suspend: new(true), Template: shell("true", corev1.RestartPolicyNever)})
	create("long", batchv1.JobSpec{Parallelism: new(int32(2)), Template: shell("sleep 1000", corev1.RestartPolicyNever)})
	create("waits", batchv1.JobSpec{BackoffLimit: new(int32(6)), Template: shell("false", corev1.RestartPolicyNever)})
	yearly := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "yearly"}, Spec: batchv1.CronJobSpec{
		Schedule: "0 0 1 1 *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: shell("true", corev1.RestartPolicyNever)}},
	}}
	objects.Create(t, client.BatchV1().CronJobs(namespace), yearly)
	finished("some")
	finished("fails")
	eventually(t, "the shadow has compared", func() (bool, string) {
		_, body := get(shadow.url + "/metrics")
		return counts(body, `jobpolicy_shadow_comparisons_total{object="job",result="same"`, 3) && counts(body, `jobpolicy_shadow_comparisons_total{object="cronjob",result="same"`, 1), body
	})
	if missing := missingMetrics(t, shadowOnly, shadow.url); len(missing) > 0 {
		t.Errorf("an alert asks for %v, which the shadow does not have", missing)
	}
	if n := shadow.metric(t, "jobpolicy_shadow_differences_total"); n != 0 {
		_, page := get(shadow.url + "/debug/differences")
		t.Errorf("%v differences while the built-in controllers run:\n%s", n, page)
	}

	must.Succeed(t, beside.Kill(cluster.ControllerManager))
	create("left-alone", batchv1.JobSpec{Template: shell("true", corev1.RestartPolicyNever)})
	difference := func(until string) func() (bool, string) {
		return func() (bool, string) {
			code, page := get(shadow.url + "/debug/differences?format=json")
			row := fmt.Sprintf(`{"object":"job","namespace":%q,"name":"left-alone",`, namespace)
			for _, part := range strings.SplitAfter(page, "},") {
				if strings.Contains(part, row) && strings.Contains(part, `"kind":"create_pods"`) && strings.Contains(part, until) {
					return code == http.StatusOK, page
				}
			}
			return false, page
		}
	}
	eventually(t, "the Job that nobody runs is reported", difference(`"until":null`))
	must.Succeed(t, beside.StartComponent(t.Context(), cluster.ControllerManager))
	finished("left-alone")
	eventually(t, "the difference has ended", difference(`"until":"`))
}

// counts reports whether a sample is at least n.
func counts(metrics, prefix string, n float64) bool {
	for line := range strings.Lines(metrics) {
		var value float64
		fields := strings.Fields(line)
		if strings.HasPrefix(line, prefix) {
			if _, err := fmt.Sscan(fields[1], &value); err == nil && value >= n {
				return true
			}
		}
	}
	return false
}

// readOnly writes a kubeconfig for a user who has the rights of the manifests for shadow
// mode, and checks that none of them writes.
func readOnly(t *testing.T, plane *cluster.Cluster, client *kubernetes.Clientset) string {
	t.Helper()
	const user = "shadow"
	const manifests = "../../../deploy/kubernetes/shadow"
	for _, object := range kustomize(t, manifests) {
		if slices.Contains([]string{"Role", "RoleBinding", "Lease", "Secret"}, object.GetKind()) {
			t.Errorf("the manifests for shadow mode have a %s", object.GetKind())
		}
	}
	role := clusterRole(t, manifests)
	for _, rule := range role.Rules {
		for _, verb := range rule.Verbs {
			if !slices.Contains([]string{"get", "list", "watch"}, verb) {
				t.Errorf("the manifests for shadow mode grant %s on %v", verb, rule.Resources)
			}
		}
	}
	role.Name = user
	objects.Create(t, client.RbacV1().ClusterRoles(), &role)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	objects.Create(t, client.RbacV1().ClusterRoleBindings(), binding)
	return impersonating(t, plane, user)
}
