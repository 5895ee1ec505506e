package e2e

import (
	"path/filepath"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/objects"
)

// An executor of some namespaces needs no more than Roles in them: it runs the Jobs and
// CronJobs there, deletes finished Jobs, and leaves another namespace alone.
func TestRolesSufficeForAnExecutorOfSomeNamespaces(t *testing.T) {
	t.Parallel()
	const manager, user = "example.com/pilot", "pilot"
	w := newCronWorld(t, client)
	inside, alsoInside, outside := w.namespace, newNamespace(t), newNamespace(t)
	for _, namespace := range []string{inside, alsoInside} {
		grantRole(t, namespace, user)
	}
	pilot := startExecutorAs(t, impersonating(t, plane, user), "--engine=embedded", "--managed-by="+manager, "--leader-elect=false",
		"--namespaces="+inside+","+alsoInside)
	eventually(t, "the executor is ready", pilot.ready)

	spec := batchv1.JobSpec{ManagedBy: new(manager), Completions: new(int32(2)), Template: shell("true", corev1.RestartPolicyNever)}
	createJob(t, outside, "job", spec)
	for _, namespace := range []string{inside, alsoInside} {
		createJob(t, namespace, "job", spec)
		waitFinished(t, namespace, "job")
	}
	short := spec
	short.TTLSecondsAfterFinished = new(int32(0))
	createJob(t, inside, "short-lived", short)
	eventually(t, "a finished Job without time to live is deleted", func() (bool, string) {
		jobs, err := client.BatchV1().Jobs(inside).List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=short-lived"})
		return err == nil && len(jobs.Items) == 0, "it is there"
	})
	w.create(t, handedTo(manager, cron("asked", onceAYear, "true")))
	w.ask(t, "asked", "once")
	w.waitMade(t, "asked", 1)

	if untouched := getJob(t, outside, "job"); untouched.Status.StartTime != nil || len(jobPods(t, untouched)) > 0 {
		t.Errorf("the Job of another namespace was begun: %s", describe(untouched))
	}
	if n := pilot.metric(t, "jobpolicy_events_dropped_total"); n != 0 {
		t.Errorf("%v events were dropped, want 0: a right may be missing", n)
	}
}

// grantRole grants a user in the namespace what the manifests grant the executor in the
// cluster, but to list and watch namespaces.
func grantRole(t *testing.T, namespace, user string) {
	t.Helper()
	role := rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: clusterRole(t, "../../../deploy/kubernetes/coexist").Rules}
	for i := range role.Rules {
		if slices.Contains(role.Rules[i].Resources, "namespaces") {
			role.Rules[i].Verbs = []string{"get"}
		}
	}
	objects.Create(t, client.RbacV1().Roles(namespace), &role)
	objects.Create(t, client.RbacV1().RoleBindings(namespace), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
}

// impersonating writes a kubeconfig with which the administrator of a control plane acts as the user.
func impersonating(t *testing.T, plane *cluster.Cluster, user string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(plane.Kubeconfig())
	must.Succeed(t, err)
	for _, info := range config.AuthInfos {
		info.Impersonate = user
	}
	must.Succeed(t, clientcmd.ResolveLocalPaths(config))
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, clientcmd.WriteToFile(*config, path))
	return path
}
