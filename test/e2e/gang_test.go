package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/deploy/local/cluster"
)

// A gangPlane is a control plane that schedules gangs. The built-in job
// controller runs beside the executor, and each has its own Jobs.
type gangPlane struct {
	plane  *cluster.Cluster
	client *kubernetes.Clientset
}

const (
	gangExecutorGates = "--feature-gates=WorkloadWithJob=true"
	ours              = "jobpolicy.dev/executor"
	builtIn           = ""
)

func startGangPlane(t *testing.T) *gangPlane {
	t.Helper()
	binaries, err := binDir()
	if err != nil {
		t.Fatal(err)
	}
	gates := "--feature-gates=GenericWorkload=true,WorkloadWithJob=true,GangScheduling=true"
	plane, err := cluster.Start(t.Context(), cluster.Options{
		StateDir: t.TempDir(), BinDir: binaries, WithoutEngine: true,
		ControllerManagerControllers: strings.Replace(cluster.DefaultControllers, ",-job-controller", "", 1),
		ExtraArgs: map[string][]string{
			cluster.APIServer:         {gates, "--runtime-config=scheduling.k8s.io/v1alpha2=true"},
			cluster.ControllerManager: {gates},
			cluster.Scheduler:         {gates},
			cluster.Executor:          {gangExecutorGates, "--replace-builtin=false", "--pod-failure-backoff=1s"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(tail(plane.LogPath(cluster.Executor), 60))
		}
		if err := plane.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	client, err := kubernetes.NewForConfig(plane.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return &gangPlane{plane, client}
}

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
		namespace := g.namespace(t)
		job := g.create(t, namespace, "train", gangSpec(manager, 3, "sleep 0.2"))
		job = g.waitJob(t, job, "complete", func(job *batchv1.Job) bool { return conditionReason(job, batchv1.JobComplete) != "" })
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
	t.Log(views[ours])
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
	namespace := g.namespace(t)
	change := map[string]func(*batchv1.JobSpec){
		"not-indexed": func(s *batchv1.JobSpec) { s.CompletionMode = nil },
		"one-pod":     func(s *batchv1.JobSpec) { s.Parallelism, s.Completions = ptr[int32](1), ptr[int32](1) },
		"not-at-once": func(s *batchv1.JobSpec) { s.Completions = ptr[int32](4) },
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
	namespace := g.namespace(t)
	job := g.create(t, namespace, strings.Repeat("n", 61), gangSpec(ours, 2, "true"))
	g.waitJob(t, job, "complete", func(job *batchv1.Job) bool { return conditionReason(job, batchv1.JobComplete) != "" })
	_, group := g.onlyGang(t, namespace)
	if have := g.groupsOfPods(t, job); !slices.Equal([]string{group.Name}, have) {
		t.Errorf("groups of the pods: %v", have)
	}
}

func (g *gangPlane) testSuspended(t *testing.T) {
	namespace := g.namespace(t)
	spec := gangSpec(ours, 2, "true")
	spec.Suspend = ptr(true)
	job := g.create(t, namespace, "queued", spec)
	g.waitJob(t, job, "suspended", func(job *batchv1.Job) bool { return conditionReason(job, batchv1.JobSuspended) != "" })
	_, group := g.onlyGang(t, namespace)
	if pods := g.pods(t, job); len(pods) > 0 {
		t.Errorf("%d pods of a suspended Job", len(pods))
	}
	g.patch(t, job, `{"spec":{"suspend":false}}`)
	g.waitJob(t, job, "complete", func(job *batchv1.Job) bool { return conditionReason(job, batchv1.JobComplete) != "" })
	if have := g.groupsOfPods(t, job); !slices.Equal([]string{group.Name}, have) {
		t.Errorf("groups of the pods: %v", have)
	}
	g.onlyGang(t, namespace)
}

func (g *gangPlane) testRestartedHalfWay(t *testing.T) {
	namespace := g.namespace(t)
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
	if now := g.job(t, job); now.Status.StartTime != nil || len(g.pods(t, job)) > 0 {
		t.Errorf("the Job began without its gang: %s", describe(now))
	}
	if err := g.client.CoreV1().ResourceQuotas(namespace).Delete(t.Context(), "no-groups", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	g.waitJob(t, job, "complete", func(job *batchv1.Job) bool { return conditionReason(job, batchv1.JobComplete) != "" })
	workload, group := g.onlyGang(t, namespace)
	if workload.UID != before[0].UID {
		t.Errorf("there is another Workload than before the restart")
	}
	if have := g.groupsOfPods(t, job); !slices.Equal([]string{group.Name}, have) {
		t.Errorf("groups of the pods: %v", have)
	}
}

func (g *gangPlane) testBeganBefore(t *testing.T) {
	namespace := g.namespace(t)
	const manager = "example.com/late"
	args := []string{"--engine=embedded", "--managed-by=" + manager, "--leader-elect=false", "--pod-failure-backoff=1s"}
	without := startExecutorOn(t, g.plane, args...)
	job := g.create(t, namespace, "older", gangSpec(manager, 2, "sleep 600"))
	g.waitJob(t, job, "active", func(job *batchv1.Job) bool { return job.Status.Active == 2 })
	without.kill()
	with := startExecutorOn(t, g.plane, append(args, gangExecutorGates)...)
	eventually(t, "the executor with the gate is ready", with.ready)
	g.replaceFirstPod(t, job)
	if have := g.groupsOfPods(t, job); !slices.Equal([]string{"none"}, have) {
		t.Errorf("groups of the pods: %v", have)
	}
	if workloads, groups := g.gangs(t, namespace); len(workloads)+len(groups) > 0 {
		t.Errorf("%d Workloads and %d PodGroups", len(workloads), len(groups))
	}
}

func (g *gangPlane) testTakenOver(t *testing.T) {
	namespace := g.namespace(t)
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
	if have := g.groupsOfPods(t, job); !slices.Equal([]string{group.Name}, have) {
		t.Errorf("groups of the pods: %v, want %s", have, group.Name)
	}
	g.onlyGang(t, namespace)
	successor.kill()
	if err := g.plane.StartComponent(t.Context(), cluster.ControllerManager); err != nil {
		t.Fatal(err)
	}
}

// gangSpec is a Job with n pods that all run at once.
func gangSpec(manager string, n int32, script string) batchv1.JobSpec {
	spec := batchv1.JobSpec{
		Parallelism: ptr(n), Completions: ptr(n), CompletionMode: ptr(batchv1.IndexedCompletion),
		Template: shell(script, corev1.RestartPolicyNever),
	}
	if manager != builtIn {
		spec.ManagedBy = ptr(manager)
	}
	return spec
}

func schedulingGroup(name string) *corev1.PodSchedulingGroup {
	return &corev1.PodSchedulingGroup{PodGroupName: &name}
}

// namespace makes a namespace, and deletes what is in it when the test ends.
func (g *gangPlane) namespace(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("gang-%d", namespaces.Add(1))
	_, err := g.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace has its service account", func() (bool, string) {
		_, err := g.client.CoreV1().ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
	return name
}

func (g *gangPlane) create(t *testing.T, namespace, name string, spec batchv1.JobSpec) *batchv1.Job {
	t.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	job, err := g.client.BatchV1().Jobs(namespace).Create(t.Context(), job, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func (g *gangPlane) job(t *testing.T, job *batchv1.Job) *batchv1.Job {
	t.Helper()
	job, err := g.client.BatchV1().Jobs(job.Namespace).Get(t.Context(), job.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func (g *gangPlane) patch(t *testing.T, job *batchv1.Job, patch string) {
	t.Helper()
	_, err := g.client.BatchV1().Jobs(job.Namespace).Patch(t.Context(), job.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func (g *gangPlane) waitJob(t *testing.T, job *batchv1.Job, what string, done func(*batchv1.Job) bool) *batchv1.Job {
	t.Helper()
	var now *batchv1.Job
	eventually(t, fmt.Sprintf("Job %s: %s", job.Name, what), func() (bool, string) {
		now = g.job(t, job)
		return done(now), describe(now)
	})
	return now
}

// pods are those that the Job controls, without those on their way out.
func (g *gangPlane) pods(t *testing.T, job *batchv1.Job) []corev1.Pod {
	t.Helper()
	pods, err := g.client.CoreV1().Pods(job.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		return !metav1.IsControlledBy(&pod, job) || pod.DeletionTimestamp != nil
	})
}

// groupsOfPods are the PodGroups that the Job's pods name, each once; "none"
// stands for a pod without.
func (g *gangPlane) groupsOfPods(t *testing.T, job *batchv1.Job) []string {
	t.Helper()
	var names []string
	for _, pod := range g.pods(t, job) {
		name := "none"
		if group := pod.Spec.SchedulingGroup; group != nil {
			name = *group.PodGroupName
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// replaceFirstPod deletes the pod of index 0, and waits for another.
func (g *gangPlane) replaceFirstPod(t *testing.T, job *batchv1.Job) {
	t.Helper()
	first := func() *corev1.Pod {
		for _, pod := range g.pods(t, job) {
			if pod.Annotations[batchv1.JobCompletionIndexAnnotation] == "0" {
				return &pod
			}
		}
		return nil
	}
	old := first()
	if err := g.client.CoreV1().Pods(old.Namespace).Delete(t.Context(), old.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "index 0 has another pod", func() (bool, string) {
		now := first()
		return now != nil && now.UID != old.UID, describe(g.job(t, job))
	})
}

// gangs lists the Workloads and PodGroups of a namespace.
func (g *gangPlane) gangs(t *testing.T, namespace string) ([]schedulingv1alpha2.Workload, []schedulingv1alpha2.PodGroup) {
	t.Helper()
	workloads, err := g.client.SchedulingV1alpha2().Workloads(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	groups, err := g.client.SchedulingV1alpha2().PodGroups(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return workloads.Items, groups.Items
}

// onlyGang returns the only Workload and the only PodGroup of a namespace.
func (g *gangPlane) onlyGang(t *testing.T, namespace string) (*schedulingv1alpha2.Workload, *schedulingv1alpha2.PodGroup) {
	t.Helper()
	workloads, groups := g.gangs(t, namespace)
	if len(workloads) != 1 || len(groups) != 1 {
		t.Fatalf("%d Workloads and %d PodGroups, want one each", len(workloads), len(groups))
	}
	return &workloads[0], &groups[0]
}

// waitEvent waits for an event on the Job, and returns its type and message.
func (g *gangPlane) waitEvent(t *testing.T, job *batchv1.Job, reason string) (text string) {
	t.Helper()
	eventually(t, "event "+reason, func() (bool, string) {
		events, err := g.client.CoreV1().Events(job.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(job.UID)})
		if err != nil {
			return false, err.Error()
		}
		var have []string
		for _, e := range events.Items {
			have = append(have, e.Reason)
			if e.Reason == reason {
				text = e.Type + " " + e.Message
			}
		}
		return text != "", fmt.Sprint(have)
	})
	return text
}

// forbidPodGroups sets a quota of none, and waits until it is in force.
func (g *gangPlane) forbidPodGroups(t *testing.T, namespace string) {
	t.Helper()
	_, err := g.client.CoreV1().ResourceQuotas(namespace).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "no-groups"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/podgroups.scheduling.k8s.io": resource.MustParse("0")}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	probe := &schedulingv1alpha2.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "probe"},
		Spec: schedulingv1alpha2.PodGroupSpec{SchedulingPolicy: schedulingv1alpha2.PodGroupSchedulingPolicy{
			Gang: &schedulingv1alpha2.GangSchedulingPolicy{MinCount: 2},
		}},
	}
	eventually(t, "PodGroups are forbidden", func() (bool, string) {
		_, err := g.client.SchedulingV1alpha2().PodGroups(namespace).Create(t.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "exceeded quota"), fmt.Sprint(err)
	})
}
