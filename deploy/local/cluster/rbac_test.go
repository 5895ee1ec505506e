package cluster

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/fake"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/component-helpers/auth/rbac/validation"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"jobpolicy.dev/deploy/local/internal/pki"
	"jobpolicy.dev/deploy/local/must"
)

// upstreamRole returns a ClusterRole that the API server makes for one of the
// controllers in the controller manager.
func upstreamRole(t *testing.T, name string) rbacv1.ClusterRole {
	t.Helper()
	roles := bootstrappolicy.ControllerRoles()
	at := slices.IndexFunc(roles, func(r rbacv1.ClusterRole) bool { return r.Name == name })
	if at < 0 {
		t.Fatalf("upstream has no role %s", name)
	}
	return roles[at]
}

func TestExecutorMayDoWhatTheBuiltInControllersMay(t *testing.T) {
	// The built-in controller gets rights to Workloads with this gate only.
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.GenericWorkload: true, features.WorkloadWithJob: true,
	})
	// It writes events by the older API and never updates one, no Job but its status, and patches CronJobs.
	events := []rbacv1.PolicyRule{rule("", "events", "update"), rule("events.k8s.io", "events", "create"), rule("events.k8s.io", "events", "patch"), rule("events.k8s.io", "events", "update")}
	jobs := []rbacv1.PolicyRule{rule("batch", "jobs", "patch"), rule("batch", "jobs", "update")}
	// It patches Workloads and PodGroups, as the built-in controller does, and updates none.
	groups := []rbacv1.PolicyRule{rule("scheduling.k8s.io", "podgroups", "update"), rule("scheduling.k8s.io", "workloads", "update")}
	cases := map[string]struct{ notNeeded []rbacv1.PolicyRule }{
		"job-controller":                {slices.Concat(jobs, events, groups)},
		"ttl-after-finished-controller": {events},
		"cronjob-controller":            {slices.Concat([]rbacv1.PolicyRule{rule("batch", "cronjobs", "update")}, jobs, events)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, missing := validation.Covers(executorRules(), upstreamRole(t, "system:controller:"+name).Rules)
			must.Equal(t, "rights that the executor lacks", tc.notNeeded, missing, cmpopts.EquateEmpty())
		})
	}
}

func TestExecutorMayNotDoMoreThanItsWork(t *testing.T) {
	cases := map[string]rbacv1.PolicyRule{
		"read secrets":       rule("", "secrets", "get"),
		"change Jobs":        rule("batch", "jobs", "patch"),
		"create CronJobs":    rule("batch", "cronjobs", "create"),
		"delete CronJobs":    rule("batch", "cronjobs", "delete"),
		"change namespaces":  rule("", "namespaces", "patch"),
		"write a pod status": rule("", "pods/status", "update"),
		"run a command":      rule("", "pods/exec", "create"),
		"change nodes":       rule("", "nodes", "update"),
		"give itself rights": rule("rbac.authorization.k8s.io", "clusterroles", "update"),
	}
	for name, forbidden := range cases {
		t.Run(name, func(t *testing.T) {
			if covered, _ := validation.Covers(executorRules(), []rbacv1.PolicyRule{forbidden}); covered {
				t.Errorf("the executor may %s", name)
			}
		})
	}
}

func TestGrantCanBeRepeated(t *testing.T) {
	stale := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: ExecutorRole}}
	client := fake.NewClientset(stale)
	for range 2 {
		must.Succeed(t, new(layout).grant(t.Context(), client))
	}
	role, err := client.RbacV1().ClusterRoles().Get(t.Context(), ExecutorRole, metav1.GetOptions{})
	must.Succeed(t, err)
	must.Equal(t, "rules of the role", executorRules(), role.Rules)
	bindings, err := client.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	must.Succeed(t, err)
	got := map[string]string{}
	for _, b := range bindings.Items {
		got[b.Subjects[0].Kind+" "+b.Subjects[0].Name] = b.RoleRef.Name
	}
	want := map[string]string{"User " + pki.ExecutorUser: ExecutorRole, "Group " + pki.NodeGroup: "system:node"}
	must.Equal(t, "subjects and their roles", want, got)
}
