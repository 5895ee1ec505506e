package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/test/kit/controlplane"
	"jobpolicy.dev/test/kit/objects"
)

// A gangPlane is a control plane that schedules gangs. The built-in job
// controller runs beside the executor, and each has its own Jobs.
type gangPlane struct {
	plane  *cluster.Cluster
	client *kubernetes.Clientset
}

const (
	gangGates         = "--feature-gates=GenericWorkload=true,WorkloadWithJob=true"
	gangExecutorGates = "--feature-gates=WorkloadWithJob=true"
	ours              = "jobpolicy.dev/executor"
	builtIn           = ""
)

func startGangPlane(t *testing.T) *gangPlane {
	t.Helper()
	plane := controlplane.Start(t, cluster.Options{
		WithoutEngine:                true,
		ControllerManagerControllers: strings.Replace(cluster.DefaultControllers, ",-job-controller", "", 1),
		ExtraArgs: map[string][]string{
			cluster.APIServer:         {gangGates, "--runtime-config=scheduling.k8s.io/v1beta1=true"},
			cluster.ControllerManager: {gangGates},
			cluster.Scheduler:         {gangGates},
			cluster.Executor:          {gangExecutorGates, "--replace-builtin=false", "--pod-failure-backoff=1s"},
		},
	})
	logsExecutor(t, plane)
	return &gangPlane{plane, kubernetes.NewForConfigOrDie(plane.RESTConfig())}
}

// gangSpec is a Job with n pods that all run at once, and that declares a gang.
func gangSpec(manager string, n int32, script string) batchv1.JobSpec {
	spec := batchv1.JobSpec{
		Parallelism: new(n), Completions: new(n), CompletionMode: new(batchv1.IndexedCompletion),
		Template: shell(script, corev1.RestartPolicyNever),
		Scheduling: &batchv1.JobSchedulingConfiguration{
			SchedulingPolicy: &schedulingv1alpha3.WorkloadPodGroupSchedulingPolicy{Gang: &schedulingv1alpha3.WorkloadPodGroupGangSchedulingPolicy{}},
		},
	}
	if manager != builtIn {
		spec.ManagedBy = new(manager)
	}
	return spec
}

func schedulingGroup(name string) *corev1.PodSchedulingGroup {
	return &corev1.PodSchedulingGroup{PodGroupName: &name}
}

func (g *gangPlane) create(t *testing.T, namespace, name string, spec batchv1.JobSpec) *batchv1.Job {
	t.Helper()
	return createJobOn(t, g.client, namespace, name, spec)
}

// createJob creates a Job that has more than a name.
func (g *gangPlane) createJob(t *testing.T, namespace string, job *batchv1.Job) *batchv1.Job {
	t.Helper()
	return objects.Create(t, g.client.BatchV1().Jobs(namespace), job)
}

func (g *gangPlane) patch(t *testing.T, job *batchv1.Job, patch string) {
	t.Helper()
	objects.Patch(t, g.client.BatchV1().Jobs(job.Namespace), job.Name, patch)
}

func (g *gangPlane) waitJob(t *testing.T, job *batchv1.Job, what string, done func(*batchv1.Job) bool) *batchv1.Job {
	t.Helper()
	return waitJobOn(t, g.client, job.Namespace, job.Name, what, done)
}

// pods are those that the Job controls, without those on their way out.
func (g *gangPlane) pods(t *testing.T, job *batchv1.Job) []corev1.Pod {
	t.Helper()
	pods := objects.List(t, g.client.CoreV1().Pods(job.Namespace), metav1.ListOptions{})
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

// checkGroups checks which PodGroups the Job's pods name.
func (g *gangPlane) checkGroups(t *testing.T, job *batchv1.Job, want string) {
	t.Helper()
	if have := g.groupsOfPods(t, job); !slices.Equal([]string{want}, have) {
		t.Errorf("groups of the pods: %v, want %s", have, want)
	}
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
	objects.Delete(t, g.client.CoreV1().Pods(old.Namespace), old.Name, metav1.DeleteOptions{})
	eventually(t, "index 0 has another pod", func() (bool, string) {
		now := first()
		return now != nil && now.UID != old.UID, describe(getJobOn(t, g.client, job.Namespace, job.Name))
	})
}

// gangs lists the Workloads and PodGroups of a namespace.
func (g *gangPlane) gangs(t *testing.T, namespace string) ([]schedulingv1beta1.Workload, []schedulingv1beta1.PodGroup) {
	t.Helper()
	workloads := objects.List(t, g.client.SchedulingV1beta1().Workloads(namespace), metav1.ListOptions{})
	groups := objects.List(t, g.client.SchedulingV1beta1().PodGroups(namespace), metav1.ListOptions{})
	return workloads.Items, groups.Items
}

// onlyGang returns the only Workload and the only PodGroup of a namespace.
func (g *gangPlane) onlyGang(t *testing.T, namespace string) (*schedulingv1beta1.Workload, *schedulingv1beta1.PodGroup) {
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

// waitMinCount waits until the Workload and the PodGroup of the namespace have this minimum.
func (g *gangPlane) waitMinCount(t *testing.T, namespace string, want int32) {
	t.Helper()
	eventually(t, fmt.Sprintf("minCount %d", want), func() (bool, string) {
		workload, group := g.onlyGang(t, namespace)
		have := [2]int32{workload.Spec.PodGroupTemplates[0].SchedulingPolicy.Gang.MinCount, group.Spec.SchedulingPolicy.Gang.MinCount}
		return have == [2]int32{want, want}, fmt.Sprint(have)
	})
}

// forbidPodGroups sets a quota of none, and waits until it is in force.
func (g *gangPlane) forbidPodGroups(t *testing.T, namespace string) {
	t.Helper()
	objects.Create(t, g.client.CoreV1().ResourceQuotas(namespace), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "no-groups"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/podgroups.scheduling.k8s.io": resource.MustParse("0")}},
	})
	probe := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "probe"},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 2},
		}},
	}
	eventually(t, "PodGroups are forbidden", func() (bool, string) {
		_, err := g.client.SchedulingV1beta1().PodGroups(namespace).Create(t.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "exceeded quota"), fmt.Sprint(err)
	})
}
