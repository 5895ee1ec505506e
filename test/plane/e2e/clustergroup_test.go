package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/test/kit/objects"
)

// CronJobs of two namespaces use a database that bears two of them at once. The operator has said so: who asks for one at once holds
// nobody up. Engine and executor are killed in the middle. A user who may read his own namespace alone is told for whom his run waits.
func TestAGroupOfTheClusterSharesItsActiveRuns(t *testing.T) {
	first, second := newCronWorld(t, client), newCronWorld(t, client)
	if second.namespace < first.namespace {
		first, second = second, first
	}
	due := lastHourly()
	type place struct {
		w    *cronWorld
		name string
	}
	order := []place{{first, "x"}, {first, "y"}, {second, "a"}, {second, "b"}, {second, "c"}}
	for i, p := range order {
		script := "sleep 3"
		if p.w == first {
			script = "sleep 20" // Long enough for what is asked meanwhile.
		}
		policy := fmt.Sprintf("{cronJob: {group: {name: %s, maxActiveRuns: %d}}}", clusterGroup, 1+2*i)
		p.w.createMissing(t, p.name, policy, script, due.Add(-time.Hour))
	}
	for i, p := range []place{{first, "x"}, {first, "y"}, {second, "c"}, {second, "b"}, {second, "a"}} {
		p.w.resume(t, p.name)
		if i < 2 {
			p.w.waitMade(t, p.name, 1)
		}
	}
	user := readsAlone(t, second.namespace)
	told := regexp.MustCompile(`Waiting\n.* waits for room in its group, which is one of the cluster: group ` + clusterGroup + ` of the cluster has 2 of 2 active runs; [0-2] wait before it\.`)
	said := ""
	eventually(t, "the user is told for whom the run waits", func() (bool, string) {
		if made := second.madeFor("c"); len(made) > 0 {
			t.Fatalf("%s has started, and until then explain said\n%s", made[0].Name, said)
		}
		out, err := plugin(t, "explain", "cronjob/c", "--kubeconfig", user, "--namespace", second.namespace)
		said = out
		return err == nil && told.MatchString(out), out
	})
	killAndStart(t, cluster.Engine)
	killAndStart(t, cluster.Executor)
	goOnBesideOthers(t)
	var jobs []*batchv1.Job
	for _, p := range order {
		p.w.waitMade(t, p.name, 1)
		jobs = append(jobs, waitFinished(t, p.w.namespace, p.w.madeFor(p.name)[0].Name))
	}
	checkActiveAtOnce(t, jobs, 2)
	if !slices.IsSortedFunc(jobs, func(a, b *batchv1.Job) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) }) {
		t.Errorf("the runs did not start in the order of their namespaces and names")
	}
}

// readsAlone makes a user who may read one namespace, and nothing else. It returns his kubeconfig.
func readsAlone(t *testing.T, namespace string) string {
	t.Helper()
	user := "reader-of-" + namespace
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"batch"}, Resources: []string{"jobs", "cronjobs"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{""}, Resources: []string{"events", "pods"}, Verbs: []string{"get", "list"}},
	}}
	objects.Create(t, client.RbacV1().Roles(namespace), role)
	objects.Create(t, client.RbacV1().RoleBindings(namespace), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	return impersonating(t, plane, user)
}
