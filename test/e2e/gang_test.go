package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/deploy/local/cluster"
)

// TestGangScheduling runs the alpha gate WorkloadWithJob of v1.36. The other
// tests run without it, on an API server that does not know Workloads.
func TestGangScheduling(t *testing.T) {
	g := startGangPlane(t)
	t.Run("the built-in controller makes the same of a Job", g.testSameAsBuiltIn)
	t.Run("Jobs that are no gangs get none", g.testNoGangs)
	t.Run("a name that leaves no room for the template's", g.testLongName)
	t.Run("a Job created suspended gets its gang at once", g.testSuspended)
	t.Run("restarted between Workload and PodGroup", g.testRestartedHalfWay)
	t.Run("a Job that began before the gate goes on without", g.testBeganBefore)
	t.Run("a gang that the built-in controller began goes on", g.testTakenOver)
}

func (g *gangPlane) testSameAsBuiltIn(t *testing.T) {
	views := map[string]string{}
	for _, manager := range []string{builtIn, ours} {
		namespace := makeNamespace(t, g.client)
		job := g.create(t, namespace, "train", gangSpec(manager, 3, "sleep 0.2"))
		job = g.waitJob(t, job, "complete", isComplete)
		views[manager] = g.view(t, job)
		background := metav1.DeletePropagationBackground
		if err := g.client.BatchV1().Jobs(namespace).Delete(t.Context(), job.Name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "Workload and PodGroup go with the Job", func() (bool, string) {
			workloads, groups := g.gangs(t, namespace)
			return len(workloads)+len(groups) == 0, fmt.Sprint(workloads, groups)
		})
	}
	if diff := cmp.Diff(views[builtIn], views[ours]); diff != "" {
		t.Errorf("what became of the Job (-built-in +ours):\n%s", diff)
	}
}

// view is all that has to do with a finished Job's gang, with words for names
// and UIDs that are its own.
func (g *gangPlane) view(t *testing.T, job *batchv1.Job) string {
	t.Helper()
	workload, group := g.onlyGang(t, job.Namespace)
	if ok, _ := regexp.MatchString("^"+job.Name+"-[a-z0-9]{6,10}$", workload.Name); !ok {
		t.Errorf("name of the Workload: %s", workload.Name)
	}
	if ok, _ := regexp.MatchString("^"+workload.Name+"-"+job.Name+"-pgt-0-[a-z0-9]{6,10}$", group.Name); !ok {
		t.Errorf("name of the PodGroup: %s", group.Name)
	}
	if n := group.Spec.SchedulingPolicy.Gang.MinCount; n != *job.Spec.Parallelism {
		t.Errorf("the gang has minCount %d", n)
	}
	lines := []any{
		workload.OwnerReferences, workload.Labels, workload.Annotations, workload.Finalizers, workload.Spec,
		group.OwnerReferences, group.Labels, group.Annotations, group.Finalizers, group.Spec,
	}
	pods := g.pods(t, job)
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Spec.Hostname, b.Spec.Hostname) })
	for _, pod := range pods {
		lines = append(lines, pod.Spec.Hostname, pod.OwnerReferences, pod.Spec.SchedulingGroup)
	}
	lines = append(lines, g.waitEvent(t, job, "WorkloadCreated"))
	text, err := json.MarshalIndent(lines, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(group.Name, "GROUP", workload.Name, "WORKLOAD", string(job.UID), "JOB UID", string(workload.UID), "WORKLOAD UID",
		string(group.UID), "GROUP UID").Replace(string(text))
}

func (g *gangPlane) testNoGangs(t *testing.T) {
	namespace := makeNamespace(t, g.client)
	change := map[string]func(*batchv1.JobSpec){
		"not-indexed": func(s *batchv1.JobSpec) { s.CompletionMode = nil },
		"one-pod":     func(s *batchv1.JobSpec) { s.Parallelism, s.Completions = new(int32(1)), new(int32(1)) },
		"not-at-once": func(s *batchv1.JobSpec) { s.Completions = new(int32(4)) },
		"their-group": func(s *batchv1.JobSpec) { s.Template.Spec.SchedulingGroup = schedulingGroup("theirs") },
	}
	for name, f := range change {
		spec := gangSpec(ours, 2, "true")
		f(&spec)
		job := g.create(t, namespace, name, spec)
		want := []string{"none"}
		if spec.Template.Spec.SchedulingGroup != nil {
			want = []string{"theirs"}
		}
		eventually(t, name+" has its pods", func() (bool, string) {
			have := g.groupsOfPods(t, job)
			return slices.Equal(want, have), fmt.Sprint(have)
		})
	}
	if workloads, groups := g.gangs(t, namespace); len(workloads)+len(groups) > 0 {
		t.Errorf("%d Workloads and %d PodGroups", len(workloads), len(groups))
	}
}

// The name of a template of pod groups is a DNS label. Upstream does not cut the
// Job's name for it, so that such a Job never starts there.
func (g *gangPlane) testLongName(t *testing.T) {
	namespace := makeNamespace(t, g.client)
	job := g.create(t, namespace, strings.Repeat("n", 61), gangSpec(ours, 2, "true"))
	g.waitJob(t, job, "complete", isComplete)
	_, group := g.onlyGang(t, namespace)
	g.checkGroups(t, job, group.Name)
}

func (g *gangPlane) testSuspended(t *testing.T) {
	namespace := makeNamespace(t, g.client)
	spec := gangSpec(ours, 2, "true")
	spec.Suspend = new(true)
	job := g.create(t, namespace, "queued", spec)
	g.waitJob(t, job, "suspended", func(job *batchv1.Job) bool { return conditionReason(job, batchv1.JobSuspended) != "" })
	_, group := g.onlyGang(t, namespace)
	if pods := g.pods(t, job); len(pods) > 0 {
		t.Errorf("%d pods of a suspended Job", len(pods))
	}
	g.patch(t, job, `{"spec":{"suspend":false}}`)
	g.waitJob(t, job, "complete", isComplete)
	g.checkGroups(t, job, group.Name)
	g.onlyGang(t, namespace)
}

func (g *gangPlane) testRestartedHalfWay(t *testing.T) {
	namespace := makeNamespace(t, g.client)
	g.forbidPodGroups(t, namespace)
	job := g.create(t, namespace, "half-way", gangSpec(ours, 2, "true"))
	g.waitEvent(t, job, "FailedCreate")
	if err := g.plane.Kill(cluster.Executor); err != nil {
		t.Fatal(err)
	}
	before, groups := g.gangs(t, namespace)
	if len(before) != 1 || len(groups) > 0 {
		t.Fatalf("%d Workloads and %d PodGroups half way", len(before), len(groups))
	}
	if err := g.plane.StartComponent(t.Context(), cluster.Executor); err != nil {
		t.Fatal(err)
	}
	if now := getJobOn(t, g.client, namespace, job.Name); now.Status.StartTime != nil || len(g.pods(t, job)) > 0 {
		t.Errorf("the Job began without its gang: %s", describe(now))
	}
	if err := g.client.CoreV1().ResourceQuotas(namespace).Delete(t.Context(), "no-groups", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	g.waitJob(t, job, "complete", isComplete)
	workload, group := g.onlyGang(t, namespace)
	if workload.UID != before[0].UID {
		t.Errorf("there is another Workload than before the restart")
	}
	g.checkGroups(t, job, group.Name)
}

func (g *gangPlane) testBeganBefore(t *testing.T) {
	namespace := makeNamespace(t, g.client)
	const manager = "example.com/late"
	args := []string{"--engine=embedded", "--managed-by=" + manager, "--leader-elect=false", "--pod-failure-backoff=1s"}
	without := startExecutorOn(t, g.plane, args...)
	job := g.create(t, namespace, "older", gangSpec(manager, 2, "sleep 600"))
	g.waitJob(t, job, "active", func(job *batchv1.Job) bool { return job.Status.Active == 2 })
	without.kill()
	with := startExecutorOn(t, g.plane, append(args, gangExecutorGates)...)
	eventually(t, "the executor with the gate is ready", with.ready)
	g.replaceFirstPod(t, job)
	g.checkGroups(t, job, "none")
	if workloads, groups := g.gangs(t, namespace); len(workloads)+len(groups) > 0 {
		t.Errorf("%d Workloads and %d PodGroups", len(workloads), len(groups))
	}
}

func (g *gangPlane) testTakenOver(t *testing.T) {
	namespace := makeNamespace(t, g.client)
	job := g.create(t, namespace, "handed-over", gangSpec(builtIn, 2, "sleep 600"))
	g.waitJob(t, job, "active", func(job *batchv1.Job) bool { return job.Status.Active == 2 })
	_, group := g.onlyGang(t, namespace)
	if _, err := g.plane.StopComponent(t.Context(), cluster.ControllerManager); err != nil {
		t.Fatal(err)
	}
	successor := startExecutorOn(t, g.plane, "--engine=embedded", "--replace-builtin", "--managed-by=example.com/none",
		"--leader-elect=false", "--pod-failure-backoff=1s", gangExecutorGates)
	eventually(t, "the successor is ready", successor.ready)
	g.replaceFirstPod(t, job)
	g.checkGroups(t, job, group.Name)
	g.onlyGang(t, namespace)
	successor.kill()
	if err := g.plane.StartComponent(t.Context(), cluster.ControllerManager); err != nil {
		t.Fatal(err)
	}
}
