package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/utils/ptr"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/executor"
	"jobpolicy.dev/test/kit/objects"
)

// TestGangScheduling runs the alpha gate WorkloadWithJob of v1.37. The other
// tests run without it, on an API server that does not know Workloads.
func TestGangScheduling(t *testing.T) {
	t.Parallel()
	g := startGangPlane(t)
	t.Run("the built-in controller makes the same of a Job", g.testSameAsBuiltIn)
	t.Run("Jobs that have no group", g.testNoGroups)
	t.Run("names that are no name of a template", g.testNames)
	t.Run("objects stay over suspension", g.testSuspended)
	t.Run("fewer completions than parallelism", g.testFewCompletions)
	t.Run("the minimum is changed while the Job runs", g.testElastic)
	t.Run("a replacement does not wait for pods that have ended", g.testReplacement)
	t.Run("a delegated Job waits for its controller's Workload", g.testDelegated)
	t.Run("restarted between Workload and PodGroup", g.testRestartedHalfWay)
	t.Run("a Job that began before the gate goes on without", g.testBeganBefore)
	t.Run("a gang that the built-in controller began goes on", g.testTakenOver)
	t.Run("only Jobs that declare something get objects", g.testDeclaredOnly)
	t.Run("the API server serves the API of gangs later", g.testServedLater)
}

func (g *gangPlane) testSameAsBuiltIn(t *testing.T) {
	high := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000}
	objects.Create(t, g.client.SchedulingV1().PriorityClasses(), high)
	change := map[string]func(*batchv1.JobSpec){
		"gang": func(*batchv1.JobSpec) {},
		"all that can be declared": func(s *batchv1.JobSpec) {
			s.Template.Spec.PriorityClassName = "high"
			s.Scheduling.SchedulingPolicy.Gang.MinCount = new(int32(2))
			s.Scheduling.DisruptionMode = &schedulingv1alpha3.WorkloadPodGroupDisruptionMode{All: &schedulingv1alpha3.WorkloadPodGroupAllDisruptionMode{}}
		},
		"nothing is declared": func(s *batchv1.JobSpec) { s.Scheduling, s.CompletionMode = nil, nil },
	}
	for name, f := range change {
		t.Run(name, func(t *testing.T) {
			views := map[string]string{}
			for _, manager := range []string{builtIn, ours} {
				spec := gangSpec(manager, 3, "sleep 2") // All are ready before one ends, so that the minimum need not fall.
				f(&spec)
				views[manager] = g.lived(t, spec)
			}
			if diff := cmp.Diff(views[builtIn], views[ours]); diff != "" {
				t.Errorf("what became of the Job (-built-in +ours):\n%s", diff)
			}
		})
	}
}

// lived is the view of a Job that has completed. Then the Job is deleted, and its objects with it.
func (g *gangPlane) lived(t *testing.T, spec batchv1.JobSpec) (view string) {
	t.Helper()
	namespace := makeNamespace(t, g.client)
	job := g.create(t, namespace, "train", spec)
	view = g.view(t, g.waitJob(t, job, "complete", isComplete))
	background := metav1.DeletePropagationBackground
	objects.Delete(t, g.client.BatchV1().Jobs(namespace), job.Name, metav1.DeleteOptions{PropagationPolicy: &background})
	eventually(t, "Workload and PodGroup go with the Job", func() (bool, string) {
		workloads, groups := g.gangs(t, namespace)
		return len(workloads)+len(groups) == 0, fmt.Sprint(workloads, groups)
	})
	return view
}

// view is all that has to do with a finished Job's gang, with words for names
// and UIDs that are its own.
func (g *gangPlane) view(t *testing.T, job *batchv1.Job) string {
	t.Helper()
	workload, group := g.onlyGang(t, job.Namespace)
	if want := executor.WorkloadName(job); workload.Name != want {
		t.Errorf("name of the Workload: %s, want %s", workload.Name, want)
	}
	if want := executor.PodGroupName(workload.Name, "train-pgt-0"); group.Name != want {
		t.Errorf("name of the PodGroup: %s, want %s", group.Name, want)
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
	lines = append(lines, g.waitEvent(t, job, "WorkloadCreated"), g.waitEvent(t, job, "PodGroupCreated"))
	text, err := json.MarshalIndent(lines, "", " ")
	must.Succeed(t, err)
	return strings.NewReplacer(group.Name, "GROUP", workload.Name, "WORKLOAD", string(job.UID), "JOB UID", string(workload.UID), "WORKLOAD UID",
		string(group.UID), "GROUP UID").Replace(string(text))
}

func (g *gangPlane) testNoGroups(t *testing.T) {
	namespace := makeNamespace(t, g.client)
	cron := &metav1.OwnerReference{APIVersion: "batch/v1", Kind: "CronJob", Name: "cron", UID: "c", Controller: new(true)}
	grouped := gangSpec(ours, 2, "true")
	grouped.Template.Spec.SchedulingGroup = schedulingGroup("theirs")
	cases := map[string]struct {
		spec  batchv1.JobSpec
		owner *metav1.OwnerReference
		want  string
	}{
		"of-a-cronjob": {gangSpec(ours, 2, "true"), cron, "none"},
		"their-group":  {grouped, nil, "theirs"},
	}
	for name, tc := range cases {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: tc.spec}
		if tc.owner != nil {
			job.OwnerReferences = []metav1.OwnerReference{*g.makeCronJob(t, namespace, tc.owner)}
		}
		job = g.createJob(t, namespace, job)
		eventually(t, name+" has its pods", func() (bool, string) {
			have := g.groupsOfPods(t, job)
			return slices.Equal([]string{tc.want}, have), fmt.Sprint(have)
		})
	}
	if workloads, groups := g.gangs(t, namespace); len(workloads)+len(groups) > 0 {
		t.Errorf("%d Workloads and %d PodGroups", len(workloads), len(groups))
	}
}

// makeCronJob creates a suspended CronJob, and completes the reference to it.
func (g *gangPlane) makeCronJob(t *testing.T, namespace string, ref *metav1.OwnerReference) *metav1.OwnerReference {
	t.Helper()
	cron := objects.Create(t, g.client.BatchV1().CronJobs(namespace), &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: ref.Name},
		Spec:       batchv1.CronJobSpec{Schedule: "0 0 1 1 *", Suspend: new(true), JobTemplate: batchv1.JobTemplateSpec{Spec: gangSpec(ours, 2, "true")}},
	})
	ref.UID = cron.UID
	return ref
}

// The name of a template of pod groups is a DNS label. Upstream (v1.37) makes it of the Job's name as that is, so that
// such Jobs never start there.
func (g *gangPlane) testNames(t *testing.T) {
	for _, name := range []string{"a.b", strings.Repeat("n", 61)} {
		namespace := makeNamespace(t, g.client)
		spec := gangSpec(ours, 2, "true")
		if name == "a.b" {
			spec.CompletionMode, spec.Scheduling = nil, nil
		}
		job := g.create(t, namespace, name, spec)
		g.waitJob(t, job, "complete", isComplete)
		_, group := g.onlyGang(t, namespace)
		g.checkGroups(t, job, group.Name)
	}
}

func (g *gangPlane) testSuspended(t *testing.T) {
	namespace := makeNamespace(t, g.client)
	spec := gangSpec(ours, 2, "sleep 600")
	spec.Suspend = new(true)
	job := g.create(t, namespace, "queued", spec)
	suspended := func(job *batchv1.Job) bool { return conditionReason(job, batchv1.JobSuspended) == "JobSuspended" }
	g.waitJob(t, job, "suspended", suspended)
	workload, group := g.onlyGang(t, namespace)
	if pods := g.pods(t, job); len(pods) > 0 {
		t.Errorf("%d pods of a suspended Job", len(pods))
	}
	for range 2 {
		g.patch(t, job, `{"spec":{"suspend":false}}`)
		g.waitJob(t, job, "running", func(job *batchv1.Job) bool { return ptr.Deref(job.Status.Ready, 0) == 2 })
		g.checkGroups(t, job, group.Name)
		g.patch(t, job, `{"spec":{"suspend":true}}`)
		g.waitJob(t, job, "suspended again", func(job *batchv1.Job) bool { return suspended(job) && job.Status.Active == 0 })
	}
	if w, pg := g.onlyGang(t, namespace); w.UID != workload.UID || pg.UID != group.UID {
		t.Error("Workload or PodGroup is another one than before")
	}
}

func (g *gangPlane) testFewCompletions(t *testing.T) {
	namespace := makeNamespace(t, g.client)
	spec := gangSpec(ours, 4, "true")
	spec.Completions = new(int32(2))
	job := g.create(t, namespace, "two-of-four", spec)
	g.waitJob(t, job, "complete", isComplete)
}

func (g *gangPlane) testElastic(t *testing.T) {
	namespace := makeNamespace(t, g.client)
	spec := gangSpec(ours, 3, "sleep 600")
	spec.CompletionMode, spec.Completions = nil, new(int32(9))
	spec.Scheduling.SchedulingPolicy.Gang.MinCount = new(int32(2))
	job := g.create(t, namespace, "elastic", spec)
	g.waitJob(t, job, "running", func(job *batchv1.Job) bool { return ptr.Deref(job.Status.Ready, 0) == 3 })
	g.waitMinCount(t, namespace, 2)
	workload, group := g.onlyGang(t, namespace)
	for _, n := range []int32{3, 1} {
		g.patch(t, job, fmt.Sprintf(`{"spec":{"scheduling":{"schedulingPolicy":{"gang":{"minCount":%d}}}}}`, n))
		g.waitMinCount(t, namespace, n)
	}
	g.patch(t, job, `{"spec":{"parallelism":5,"scheduling":{"schedulingPolicy":{"gang":{"minCount":5}}}}}`)
	g.waitMinCount(t, namespace, 5)
	g.waitJob(t, job, "five run", func(job *batchv1.Job) bool { return ptr.Deref(job.Status.Ready, 0) == 5 })
	if w, pg := g.onlyGang(t, namespace); w.UID != workload.UID || pg.UID != group.UID {
		t.Error("Workload or PodGroup is another one than before")
	}
}

// Index 0 has succeeded when index 1 fails for the first time. Its replacement must run, because the others wait for it
// (kubernetes/kubernetes#142330).
func (g *gangPlane) testReplacement(t *testing.T) {
	namespace, dir := makeNamespace(t, g.client), t.TempDir()
	script := strings.ReplaceAll(`case $JOB_COMPLETION_INDEX in
0) touch DIR/zero;;
1) if test -e DIR/failed; then touch DIR/replaced; exit 0; fi
   until test -e DIR/go; do sleep 0.1; done; touch DIR/failed; exit 1;;
*) until test -e DIR/replaced; do sleep 0.1; done;;
esac`, "DIR", dir)
	job := g.create(t, namespace, "replaced", gangSpec(ours, 4, script))
	g.waitJob(t, job, "index 0 has succeeded", func(job *batchv1.Job) bool { return job.Status.CompletedIndexes == "0" })
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	g.waitJob(t, job, "complete", isComplete)
	_, group := g.onlyGang(t, namespace)
	g.checkGroups(t, job, group.Name)
}

// The Job is there five seconds before the Workload that it was told of.
func (g *gangPlane) testDelegated(t *testing.T) {
	namespace := makeNamespace(t, g.client)
	train := objects.Create(t, g.client.CoreV1().ConfigMaps(namespace), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "train"}})
	parent := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: train.Name, UID: train.UID, Controller: new(true)}
	spec := gangSpec(ours, 2, "true")
	spec.Scheduling = nil
	job := g.createJob(t, namespace, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: "workers", OwnerReferences: []metav1.OwnerReference{parent},
			Annotations: map[string]string{"scheduling.k8s.io/group-template-name": "workers"},
		},
		Spec: spec,
	})
	if want, got := "Warning No pods are created yet: ConfigMap train, which controls the Job, has no Workload yet", g.waitEvent(t, job, "WaitingForWorkload"); got != want {
		t.Errorf("event %q, want %q", got, want)
	}
	time.Sleep(5 * time.Second)
	if pods := g.pods(t, job); len(pods) > 0 {
		t.Errorf("%d pods before there is a Workload", len(pods))
	}
	workload := objects.Create(t, g.client.SchedulingV1beta1().Workloads(namespace), &schedulingv1beta1.Workload{
		ObjectMeta: metav1.ObjectMeta{Name: "parents", OwnerReferences: []metav1.OwnerReference{parent}},
		Spec: schedulingv1beta1.WorkloadSpec{
			ControllerRef: &schedulingv1beta1.TypedLocalObjectReference{Kind: "ConfigMap", Name: "train"},
			PodGroupTemplates: []schedulingv1beta1.PodGroupTemplate{{
				Name: "workers", SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 2}},
			}},
		},
	})
	g.waitJob(t, job, "complete", isComplete)
	only, group := g.onlyGang(t, namespace)
	g.checkGroups(t, job, group.Name)
	if only.UID != workload.UID || len(group.OwnerReferences) != 1 || group.OwnerReferences[0].UID != job.UID {
		t.Errorf("the Workload is %s, and the owners of the PodGroup are %v", only.Name, group.OwnerReferences)
	}
}

func (g *gangPlane) testDeclaredOnly(t *testing.T) {
	namespace := makeNamespace(t, g.client)
	const manager = "example.com/declared"
	declared := startExecutorOn(t, g.plane, "--engine=embedded", "--managed-by="+manager, "--leader-elect=false", gangExecutorGates, "--pod-groups-for-all-jobs=false")
	eventually(t, "the executor is ready", declared.ready)
	plain := gangSpec(manager, 2, "true")
	plain.Scheduling = nil
	g.waitJob(t, g.create(t, namespace, "plain", plain), "complete", isComplete)
	if workloads, groups := g.gangs(t, namespace); len(workloads)+len(groups) > 0 {
		t.Errorf("%d Workloads and %d PodGroups", len(workloads), len(groups))
	}
	job := g.waitJob(t, g.create(t, namespace, "gang", gangSpec(manager, 2, "true")), "complete", isComplete)
	_, group := g.onlyGang(t, namespace)
	g.checkGroups(t, job, group.Name)
	declared.kill()
}

func (g *gangPlane) testRestartedHalfWay(t *testing.T) {
	namespace := makeNamespace(t, g.client)
	g.forbidPodGroups(t, namespace)
	job := g.create(t, namespace, "half-way", gangSpec(ours, 2, "true"))
	g.waitEvent(t, job, "FailedCreate")
	must.Succeed(t, g.plane.Kill(cluster.Executor))
	before, groups := g.gangs(t, namespace)
	if len(before) != 1 || len(groups) > 0 {
		t.Fatalf("%d Workloads and %d PodGroups half way", len(before), len(groups))
	}
	must.Succeed(t, g.plane.StartComponent(t.Context(), cluster.Executor))
	if now := getJobOn(t, g.client, namespace, job.Name); now.Status.StartTime != nil || len(g.pods(t, job)) > 0 {
		t.Errorf("the Job began without its gang: %s", describe(now))
	}
	objects.Delete(t, g.client.CoreV1().ResourceQuotas(namespace), "no-groups", metav1.DeleteOptions{})
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
	must.Succeed(t, g.plane.StartComponent(t.Context(), cluster.ControllerManager))
}

// The executor is started beside an API server that does not serve the API of gangs yet, and runs while it begins to.
func (g *gangPlane) testServedLater(t *testing.T) {
	stop := func(component string) {
		if _, err := g.plane.StopComponent(t.Context(), component); err != nil {
			t.Fatal(err)
		}
	}
	start := func(component string) {
		must.Succeed(t, g.plane.StartComponent(t.Context(), component))
	}
	serve := func(args ...string) {
		stop(cluster.APIServer)
		must.Succeed(t, g.plane.SetExtraArgs(cluster.APIServer, args...))
		start(cluster.APIServer)
	}
	namespace := makeNamespace(t, g.client) // There before: making one takes the controller manager.
	stop(cluster.ControllerManager)
	stop(cluster.Scheduler)
	serve("--runtime-config=scheduling.k8s.io/v1beta1=false")

	const manager = "example.com/early"
	early := startExecutorOn(t, g.plane, "--engine=embedded", "--managed-by="+manager, "--leader-elect=false", gangExecutorGates)
	eventually(t, "the executor says what is missing", func() (bool, string) {
		ready, body := early.ready()
		return !ready && strings.Contains(body, "scheduling.k8s.io/v1beta1") && strings.Contains(body, "WorkloadWithJob"), body
	})
	spec := gangSpec(manager, 2, "true")
	spec.Scheduling = nil // The API server drops it.
	job := g.create(t, namespace, "early", spec)
	if pods := g.pods(t, job); len(pods) > 0 {
		t.Errorf("%d pods without a group", len(pods))
	}

	serve(gangGates, "--runtime-config=scheduling.k8s.io/v1beta1=true")
	start(cluster.ControllerManager)
	start(cluster.Scheduler)
	eventually(t, "the executor is ready", early.ready)
	g.waitJob(t, job, "complete", isComplete)
	_, group := g.onlyGang(t, namespace)
	g.checkGroups(t, job, group.Name)
	early.kill()
}
