package oldertypes

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/test/kit/controlplane"
)

const (
	namespace = "default"
	patience  = 3 * time.Minute
)

// gates let the API server keep the fields that the older types lack.
const gates = "--feature-gates=EvictionRequestAPI=true,EmptyDirVolumeMode=true,H2CContainerProbe=true,GenericWorkload=true,WorkloadWithJob=true"

// newerTemplate has fields of Kubernetes v1.37 in the spec, in a probe of a container, and in a volume.
func newerTemplate(priority int32) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy:      corev1.RestartPolicyNever,
		EvictionResponders: []corev1.EvictionResponder{{Name: "example.com/first", Priority: new(priority)}, {Name: "example.com/second", Priority: new(int32(2000))}},
		Volumes: []corev1.Volume{
			{Name: "plain", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "newer", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Mode: new(int32(0o750))}}},
		},
		InitContainers: []corev1.Container{{Name: "first", Image: "none"}},
		Containers: []corev1.Container{{Name: "plain", Image: "none"}, {
			Name: "newer", Image: "none", LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
				HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80), Protocol: new(corev1.HTTPProtocolHTTP2)},
			}},
		}},
	}}
}

type plane struct {
	*testing.T
	*cluster.Cluster
	client kubernetes.Interface
}

func start(t *testing.T) plane {
	useOlderExecutor(t)
	c := controlplane.Start(t, cluster.Options{
		WithoutEngine: true, WithoutNode: true, WithoutScheduler: true,
		ExtraArgs: map[string][]string{cluster.APIServer: {gates, "--runtime-config=scheduling.k8s.io/v1beta1=true"}},
	})
	return plane{t, c, kubernetes.NewForConfigOrDie(c.RESTConfig())}
}

// Pods and Jobs have every field of their templates, although the executor has older types than the API server:
// those of Jobs that it sees in a watch, and after a restart in a list.
func TestTemplatesOfANewerServerPassWhole(t *testing.T) {
	p := start(t)
	jobs := []string{
		p.create("counted", batchv1.JobSpec{Parallelism: new(int32(2)), Completions: new(int32(2)), Template: newerTemplate(1000)}),
		p.create("indexed", batchv1.JobSpec{
			Parallelism: new(int32(2)), Completions: new(int32(2)), CompletionMode: new(batchv1.IndexedCompletion), Template: newerTemplate(1000),
		}),
	}
	suspended := p.create("suspended", batchv1.JobSpec{Suspend: new(true), Template: newerTemplate(1000)})
	jobs = append(jobs, p.run(batchv1.JobSpec{
		Parallelism: new(int32(2)), Completions: new(int32(2)), Template: newerTemplate(1000),
		Scheduling: &batchv1.JobSchedulingConfiguration{SchedulingPolicy: &schedulingv1alpha3.WorkloadPodGroupSchedulingPolicy{
			Gang: &schedulingv1alpha3.WorkloadPodGroupGangSchedulingPolicy{MinCount: new(int32(2))},
		}},
	}))
	for _, job := range jobs {
		p.checkPods(job, 2)
	}
	p.checkStatus(suspended)
	check(t, p.Kill(cluster.Executor))
	check(t, p.client.CoreV1().Pods(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{}))
	check(t, p.StartComponent(t.Context(), cluster.Executor))
	for _, job := range jobs {
		p.checkPods(job, 2)
	}
	p.patch(suspended, `{"spec":{"suspend":false}}`)
	p.checkPods(suspended, 1)
}

// create creates a Job for the executor, and returns its name.
func (p plane) create(name string, spec batchv1.JobSpec) string {
	p.Helper()
	_, err := p.client.BatchV1().Jobs(namespace).Create(p.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	check(p.T, err)
	return name
}

// run runs a CronJob by hand, checks its Job, and returns the Job's name.
func (p plane) run(spec batchv1.JobSpec) string {
	p.Helper()
	cron := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "cron", Annotations: map[string]string{"jobpolicy.dev/run-now": "once"}},
		Spec:       batchv1.CronJobSpec{Schedule: "0 0 1 1 *", JobTemplate: batchv1.JobTemplateSpec{Spec: spec}},
	}
	cron, err := p.client.BatchV1().CronJobs(namespace).Create(p.Context(), cron, metav1.CreateOptions{})
	check(p.T, err)
	var made *batchv1.Job
	p.eventually("the CronJob has a Job", func() (bool, string) {
		list, err := p.client.BatchV1().Jobs(namespace).List(p.Context(), metav1.ListOptions{})
		check(p.T, err)
		for i := range list.Items {
			if metav1.IsControlledBy(&list.Items[i], cron) {
				made = &list.Items[i]
			}
		}
		return made != nil, fmt.Sprint(len(list.Items), " Jobs")
	})
	want := cron.Spec.JobTemplate.Spec
	if diff := cmp.Diff([]any{want.Scheduling, want.Template.Spec}, []any{made.Spec.Scheduling, made.Spec.Template.Spec}); diff != "" {
		p.Errorf("the CronJob's Job (-template +Job):\n%s", diff)
	}
	if want.Scheduling == nil || len(want.Template.Spec.EvictionResponders) == 0 {
		p.Fatal("the API server has dropped the new fields of the CronJob, so this test shows nothing")
	}
	return made.Name
}

// checkPods waits for the pods of a Job, and compares each with the template. Admission adds to a pod a token and
// tolerations, and the executor what an Indexed Job needs.
func (p plane) checkPods(name string, n int) {
	p.Helper()
	job, err := p.client.BatchV1().Jobs(namespace).Get(p.Context(), name, metav1.GetOptions{})
	check(p.T, err)
	var pods []corev1.Pod
	p.eventually(fmt.Sprintf("%s has %d pods", name, n), func() (bool, string) {
		list, err := p.client.CoreV1().Pods(namespace).List(p.Context(), metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + name})
		check(p.T, err)
		pods = slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
		return len(pods) == n, fmt.Sprint(len(pods), " pods")
	})
	for i := range pods {
		if diff := cmp.Diff(job.Spec.Template.Spec, withoutAdditions(pods[i].Spec)); diff != "" {
			p.Errorf("pod %s (-template +pod):\n%s", pods[i].Name, diff)
		}
	}
}

func withoutAdditions(spec corev1.PodSpec) corev1.PodSpec {
	spec.Hostname, spec.Tolerations, spec.Priority, spec.PreemptionPolicy = "", nil, nil, nil
	spec.ServiceAccountName, spec.DeprecatedServiceAccount, spec.EnableServiceLinks = "", "", nil
	spec.Volumes = spec.Volumes[:2]
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			containers[i].Env, containers[i].VolumeMounts = nil, nil
		}
	}
	return spec
}

// checkStatus waits until the Job's status is written.
func (p plane) checkStatus(name string) {
	p.Helper()
	p.eventually(name+" has a status", func() (bool, string) {
		job, err := p.client.BatchV1().Jobs(namespace).Get(p.Context(), name, metav1.GetOptions{})
		check(p.T, err)
		return len(job.Status.Conditions) == 1, fmt.Sprint(job.Status)
	})
}

func (p plane) patch(name, patch string) {
	p.Helper()
	_, err := p.client.BatchV1().Jobs(namespace).Patch(p.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	check(p.T, err)
}

func (p plane) eventually(what string, done func() (ok bool, state string)) {
	p.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		ok, state := done()
		switch {
		case ok:
			return
		case time.Now().After(deadline):
			p.Fatalf("%s: not after %s; last state: %s", what, patience, state)
		}
	}
}
