package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// A step is an action of the demo on a Job that runs.
type step struct {
	// command is the kubectl command that does the same, for the Job NAME.
	command string
	// due reports whether it is time for the step.
	due func(history) bool
	do  func(context.Context, kubernetes.Interface, *batchv1.Job) error
	// edits: it changes the Job's spec, so the next step waits until that is seen.
	edits bool
}

// allReady: as many pods run as the Job may have at once.
func allReady(past history) bool {
	return ptr.Deref(past.job.Status.Ready, 0) == ptr.Deref(past.job.Spec.Parallelism, 0)
}

// allActive: as many pods are there as the Job may have at once. They need not run.
func allActive(past history) bool {
	return past.job.Status.Active == ptr.Deref(past.job.Spec.Parallelism, 0)
}

// overdue: a pod was to be gone so long ago.
func overdue(by time.Duration) func(history) bool {
	return func(past history) bool {
		return slices.ContainsFunc(past.pods, func(pod podPast) bool { return !pod.due.IsZero() && time.Since(pod.due) >= by })
	}
}

func suspended(past history) bool { return conditionTrue(past.job, batchv1.JobSuspended) }

// restedWhileSuspended: no pod is left, and enough time has passed for the next
// start time, which counts in seconds, to differ from the last.
func restedWhileSuspended(past history) bool {
	return suspended(past) && past.job.Status.Active == 0 && past.job.Status.StartTime == nil &&
		len(past.startTimes) > 0 && time.Since(past.startTimes[0]) > 2*time.Second
}

func patch(due func(history) bool, body string) step {
	return step{
		"kubectl patch job NAME --type=merge -p '" + body + "'", due,
		func(ctx context.Context, client kubernetes.Interface, job *batchv1.Job) error {
			_, err := client.BatchV1().Jobs(job.Namespace).Patch(ctx, job.Name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
			return err
		},
		true,
	}
}

// orphanPods deletes the Job and not its pods.
func orphanPods(due func(history) bool) step {
	return step{
		"kubectl delete job NAME --cascade=orphan", due,
		func(ctx context.Context, client kubernetes.Interface, job *batchv1.Job) error {
			orphan := metav1.DeletePropagationOrphan
			return client.BatchV1().Jobs(job.Namespace).Delete(ctx, job.Name, metav1.DeleteOptions{PropagationPolicy: &orphan})
		},
		false,
	}
}

func deletePods(due func(history) bool) step {
	return step{
		"kubectl delete pods -l batch.kubernetes.io/job-name=NAME --wait=false", due,
		eachPod(func(ctx context.Context, client kubernetes.Interface, pod corev1.Pod) error {
			return client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{})
		}),
		false,
	}
}

func createConfigMap(name, key, value string, due func(history) bool) step {
	return step{
		fmt.Sprintf("kubectl create configmap %s --from-literal=%s=%s", name, key, value), due,
		func(ctx context.Context, client kubernetes.Interface, job *batchv1.Job) error {
			_, err := client.CoreV1().ConfigMaps(job.Namespace).Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{key: value},
			}, metav1.CreateOptions{})
			return err
		},
		false,
	}
}

func deleteQuota(name string, due func(history) bool) step {
	return step{"kubectl delete quota " + name, due, func(ctx context.Context, client kubernetes.Interface, job *batchv1.Job) error {
		return client.CoreV1().ResourceQuotas(job.Namespace).Delete(ctx, name, metav1.DeleteOptions{})
	}, false}
}

func deleteNode(name string, due func(history) bool) step {
	return step{"kubectl delete node " + name, due, func(ctx context.Context, client kubernetes.Interface, _ *batchv1.Job) error {
		return client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	}, false}
}

// evictPods does to the Job's pods what draining their node does.
func evictPods(due func(history) bool) step {
	return step{
		"kubectl drain local --pod-selector=batch.kubernetes.io/job-name=NAME --force", due,
		eachPod(func(ctx context.Context, client kubernetes.Interface, pod corev1.Pod) error {
			return client.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{
				ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
			})
		}),
		false,
	}
}

func eachPod(do func(context.Context, kubernetes.Interface, corev1.Pod) error) func(context.Context, kubernetes.Interface, *batchv1.Job) error {
	return func(ctx context.Context, client kubernetes.Interface, job *batchv1.Job) error {
		pods, err := podsOf(ctx, client, job.UID)
		if err != nil {
			return err
		}
		for _, pod := range pods {
			if err := do(ctx, client, pod); err != nil {
				return err
			}
		}
		return nil
	}
}

// director takes the steps of the scripts once they are due.
type director struct {
	obs    *observer
	client kubernetes.Interface
	// say is called with the command of each step.
	say func(command string)
	// atOnce is how many Jobs may run at once; 0: all. Those that wait are created in order.
	atOnce int
	// progress is how far each example is, by its name.
	progress map[string]progress
}

type progress struct {
	// created: the Job or CronJob is created.
	created bool
	// started: the CronJob was made to start its run.
	started bool
	// steps are how many steps were taken, generation that of the Job before the last one that
	// edits it: until a newer one is seen, that step shows no effect yet.
	steps      int
	generation int64
}

func newDirector(obs *observer, client kubernetes.Interface, say func(string)) *director {
	return &director{obs: obs, client: client, say: say, progress: map[string]progress{}}
}

// direct takes at most one step of each script: the next step depends on the effect of
// this one.
func (d *director) direct(ctx context.Context) error {
	if err := d.createNext(ctx); err != nil {
		return err
	}
	for _, ex := range d.obs.examples {
		if err := d.createLate(ctx, ex); err != nil {
			return err
		}
		if err := d.startRun(ctx, ex); err != nil {
			return err
		}
		if err := d.step(ctx, ex); err != nil {
			return err
		}
	}
	return nil
}

// createNext creates the Jobs that wait for no other one, as many as may run at once.
func (d *director) createNext(ctx context.Context) error {
	running := 0
	for i, row := range d.obs.rows() {
		if d.progress[d.obs.examples[i].name].created && !row.ended {
			running++
		}
	}
	for _, ex := range d.obs.examples {
		p := d.progress[ex.name]
		if ex.adopts != "" || p.created {
			continue
		}
		if d.atOnce > 0 && running >= d.atOnce {
			return nil
		}
		if err := ex.create(ctx, d.client); err != nil {
			return err
		}
		p.created = true
		d.progress[ex.name] = p
		running++
	}
	return nil
}

// createLate creates a Job that takes over the pods of another, when that is
// gone.
func (d *director) createLate(ctx context.Context, ex *example) error {
	p := d.progress[ex.name]
	if ex.adopts == "" || p.created {
		return nil
	}
	from := d.obs.past(ex.adopts)
	if !from.gone {
		return nil
	}
	job, err := adopting(ex.job, from.job)
	if err != nil {
		return err
	}
	p.created = true
	d.progress[ex.name] = p
	d.say("kubectl apply -f " + ex.name + ".yaml   # with the selector of " + ex.adopts)
	return createJob(ctx, d.client, job)
}

func (d *director) step(ctx context.Context, ex *example) error {
	p, past := d.progress[ex.name], d.obs.past(ex.job.Name)
	if p.steps >= len(ex.script) || past.job == nil || past.gone || past.job.Generation <= p.generation {
		return nil
	}
	next := ex.script[p.steps]
	if !next.due(past) {
		return nil
	}
	if p.steps++; next.edits {
		p.generation = past.job.Generation
	}
	d.progress[ex.name] = p
	command := ex.command(next.command, ex.job.Name)
	d.say(command)
	if err := next.do(ctx, d.client, past.job); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}
