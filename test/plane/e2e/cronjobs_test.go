package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/objects"
)

const (
	everyMinute  = "* * * * *"
	onceAYear    = "0 0 1 1 *"
	runNow       = "jobpolicy.dev/run-now"
	cronManager  = "jobpolicy.dev/managed-by"
	builtInAgent = "kube-controller-manager"
)

// A cronWorld is a namespace with CronJobs, and a record of every Job that was ever
// created in it.
type cronWorld struct {
	client    *kubernetes.Clientset
	namespace string

	mu   sync.Mutex
	made map[types.UID]*batchv1.Job
}

func newCronWorld(t *testing.T, client *kubernetes.Clientset) *cronWorld {
	t.Helper()
	w := &cronWorld{client: client, namespace: newNamespaceOn(t, client), made: map[types.UID]*batchv1.Job{}}
	watch, err := client.BatchV1().Jobs(w.namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	must.Succeed(t, err)
	t.Cleanup(watch.Stop)
	go func() {
		for event := range watch.ResultChan() {
			job, ok := event.Object.(*batchv1.Job)
			if !ok {
				continue
			}
			w.mu.Lock()
			w.made[job.UID] = job
			w.mu.Unlock()
		}
	}()
	return w
}

// cron is a CronJob whose runs execute a shell script.
func cron(name, schedule, script string) *batchv1.CronJob {
	return &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}},
		Spec: batchv1.CronJobSpec{
			Schedule:    schedule,
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: shell(script, corev1.RestartPolicyNever)}},
		},
	}
}

// handedTo assigns a CronJob to a controller, and suspends it for the built-in one.
func handedTo(manager string, c *batchv1.CronJob) *batchv1.CronJob {
	c.Annotations[cronManager] = manager
	c.Spec.Suspend = new(true)
	return c
}

func (w *cronWorld) create(t *testing.T, c *batchv1.CronJob) {
	t.Helper()
	objects.Create(t, w.client.BatchV1().CronJobs(w.namespace), c)
}

func (w *cronWorld) cron(t *testing.T, name string) *batchv1.CronJob {
	t.Helper()
	return objects.Get(t, w.client.BatchV1().CronJobs(w.namespace), name)
}

func (w *cronWorld) patch(t *testing.T, name, patch string) {
	t.Helper()
	objects.Patch(t, w.client.BatchV1().CronJobs(w.namespace), name, patch)
}

// ask asks for a run by annotation.
func (w *cronWorld) ask(t *testing.T, name, text string) {
	t.Helper()
	w.patch(t, name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, runNow, text))
}

// waitAnswered waits until the annotation that asks for a run is removed.
func (w *cronWorld) waitAnswered(t *testing.T, name string) {
	t.Helper()
	w.waitCron(t, name, "the run asked for is started", func(c *batchv1.CronJob) bool {
		_, asked := c.Annotations[runNow]
		return !asked
	})
}

func (w *cronWorld) waitCron(t *testing.T, name, what string, done func(*batchv1.CronJob) bool) *batchv1.CronJob {
	t.Helper()
	var c *batchv1.CronJob
	eventually(t, fmt.Sprintf("CronJob %s: %s", name, what), func() (bool, string) {
		c = w.cron(t, name)
		return done(c), fmt.Sprintf("annotations=%v status=%+v", c.Annotations, c.Status)
	})
	return c
}

// waitIdle waits until no run is active.
func (w *cronWorld) waitIdle(t *testing.T, name string) {
	t.Helper()
	w.waitCron(t, name, "no run is active", func(c *batchv1.CronJob) bool { return len(c.Status.Active) == 0 })
}

// madeFor returns all Jobs that were ever created for a CronJob, in order of name.
func (w *cronWorld) madeFor(name string) []*batchv1.Job {
	w.mu.Lock()
	defer w.mu.Unlock()
	var jobs []*batchv1.Job
	for _, job := range w.made {
		if owner := metav1.GetControllerOf(job); owner != nil && owner.Name == name {
			jobs = append(jobs, job)
		}
	}
	slices.SortFunc(jobs, func(a, b *batchv1.Job) int { return strings.Compare(a.Name, b.Name) })
	return jobs
}

// waitMade waits until n Jobs were created for a CronJob.
func (w *cronWorld) waitMade(t *testing.T, name string, n int) []*batchv1.Job {
	t.Helper()
	var jobs []*batchv1.Job
	eventually(t, fmt.Sprintf("Jobs made for %s: %d", name, n), func() (bool, string) {
		jobs = w.madeFor(name)
		return len(jobs) >= n, fmt.Sprint(names(jobs))
	})
	return jobs
}

// there returns the names of a CronJob's Jobs that exist and are not being deleted.
func (w *cronWorld) there(t *testing.T, name string) []string {
	t.Helper()
	list := objects.List(t, w.client.BatchV1().Jobs(w.namespace), metav1.ListOptions{})
	var jobs []*batchv1.Job
	for i := range list.Items {
		owner := metav1.GetControllerOf(&list.Items[i])
		if owner != nil && owner.Name == name && list.Items[i].DeletionTimestamp == nil {
			jobs = append(jobs, &list.Items[i])
		}
	}
	slices.SortFunc(jobs, func(a, b *batchv1.Job) int { return strings.Compare(a.Name, b.Name) })
	return names(jobs)
}

func names(jobs []*batchv1.Job) []string {
	var out []string
	for _, job := range jobs {
		out = append(out, job.Name)
	}
	return out
}

// startedTwice lists the scheduled times for which a CronJob had several Jobs.
func startedTwice(jobs []*batchv1.Job) []string {
	runs := map[string]int{}
	for _, job := range jobs {
		runs[job.Annotations[batchv1.CronJobScheduledTimestampAnnotation]+job.Annotations[runNow]]++
	}
	var twice []string
	for run, n := range runs {
		if n > 1 {
			twice = append(twice, fmt.Sprintf("%s: %d", run, n))
		}
	}
	return twice
}

// agent is the program that created an object.
func agent(object metav1.Object) string {
	for _, fields := range object.GetManagedFields() {
		if fields.Operation == metav1.ManagedFieldsOperationUpdate && fields.Subresource == "" {
			return fields.Manager
		}
	}
	return ""
}

// checkScheduled checks the name and the owner of the Job of a scheduled run.
func checkScheduled(t *testing.T, c *batchv1.CronJob, job *batchv1.Job) {
	t.Helper()
	at, err := time.Parse(time.RFC3339, job.Annotations[batchv1.CronJobScheduledTimestampAnnotation])
	if err != nil {
		t.Errorf("Job %s has no scheduled time: %v", job.Name, err)
	}
	if want := fmt.Sprintf("%s-%d", c.Name, at.Unix()/60); job.Name != want {
		t.Errorf("the Job scheduled at %v is named %s, want %s", at, job.Name, want)
	}
	if !metav1.IsControlledBy(job, c) {
		t.Errorf("Job %s has the owners %v", job.Name, job.OwnerReferences)
	}
	if c.Status.LastScheduleTime == nil || !c.Status.LastScheduleTime.Time.Equal(at) {
		t.Errorf("lastScheduleTime is %v, and %s was scheduled at %v", c.Status.LastScheduleTime, job.Name, at)
	}
}

// events are the events on a CronJob, each as its reason and message.
func (w *cronWorld) events(t *testing.T, name string) []string {
	t.Helper()
	events := objects.List(t, w.client.CoreV1().Events(w.namespace), metav1.ListOptions{
		FieldSelector: "involvedObject.kind=CronJob,involvedObject.name=" + name,
	})
	var out []string
	for _, e := range events.Items {
		out = append(out, e.Reason+": "+e.Message)
	}
	return out
}

func (w *cronWorld) waitEvent(t *testing.T, name, reason string, words ...string) {
	t.Helper()
	eventually(t, "event "+reason+" on "+name, func() (bool, string) {
		have := w.events(t, name)
		return slices.ContainsFunc(have, func(event string) bool {
			return strings.HasPrefix(event, reason+": ") &&
				!slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(event, word) })
		}), strings.Join(have, "; ")
	})
}

// untilMinute waits until shortly before the next full minute. If there is too little
// time for preparations, it waits for the minute after that.
func untilMinute(before time.Duration) time.Time {
	next := time.Now().Truncate(time.Minute).Add(time.Minute)
	if time.Until(next) < before {
		next = next.Add(time.Minute)
	}
	time.Sleep(time.Until(next.Add(-before)))
	return next
}
