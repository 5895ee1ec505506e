package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// An observer watches the Jobs and their pods, and remembers what the end of a
// Job no longer shows.
type observer struct {
	examples []*example
	url      string

	mu   sync.Mutex
	jobs map[string]*batchv1.Job
	// restarts and active are the highest numbers seen, by pod and by Job.
	restarts map[types.UID]podRestarts
	active   map[string]int32
	reasons  map[string]string
}

// podRestarts is how often a pod's containers were started again.
type podRestarts struct {
	job   string
	count int32
}

// observe starts to watch; it returns when the watches are established.
func observe(ctx context.Context, client kubernetes.Interface, executorURL string, examples []*example) (*observer, error) {
	o := &observer{
		examples: examples, url: executorURL, jobs: map[string]*batchv1.Job{},
		restarts: map[types.UID]podRestarts{}, active: map[string]int32{}, reasons: map[string]string{},
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	jobs, pods := factory.Batch().V1().Jobs().Informer(), factory.Core().V1().Pods().Informer()
	if _, err := jobs.AddEventHandler(onChange(o.sawJob)); err != nil {
		return nil, err
	}
	if _, err := pods.AddEventHandler(onChange(o.sawPod)); err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), jobs.HasSynced, pods.HasSynced) {
		return nil, fmt.Errorf("watch Jobs and pods: %w", context.Cause(ctx))
	}
	return o, nil
}

func onChange[T any](saw func(T)) cache.ResourceEventHandler {
	handle := func(obj any) {
		if typed, ok := obj.(T); ok {
			saw(typed)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    handle,
		UpdateFunc: func(_, obj any) { handle(obj) },
		DeleteFunc: handle,
	}
}

func (o *observer) sawJob(job *batchv1.Job) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.jobs[job.Name] = job
	o.active[job.Name] = max(o.active[job.Name], job.Status.Active)
}

func (o *observer) sawPod(pod *corev1.Pod) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return
	}
	var count int32
	for _, status := range pod.Status.ContainerStatuses {
		count += status.RestartCount
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.restarts[pod.UID] = podRestarts{job: owner.Name, count: max(o.restarts[pod.UID].count, count)}
}

// containerRuns is how often containers of a Job were started in all its pods.
func (o *observer) containerRuns(job string) int32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	var runs int32
	for _, pod := range o.restarts {
		if pod.job == job {
			runs += 1 + pod.count
		}
	}
	return runs
}

func (o *observer) job(name string) *batchv1.Job {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.jobs[name]
}

// refreshReasons asks the executor what the engine last said of each Job. A
// Job that it no longer knows keeps its last reason.
func (o *observer) refreshReasons(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.url+"/debug/decisions", nil)
	if err != nil {
		return
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return
	}
	defer response.Body.Close()
	var decisions []struct{ Namespace, Name, Reason string }
	if json.NewDecoder(response.Body).Decode(&decisions) != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range decisions {
		if d.Namespace == namespace {
			o.reasons[d.Name] = d.Reason
		}
	}
}

// runScripts takes the next step of each Job's script once it is due.
func (o *observer) runScripts(ctx context.Context, client kubernetes.Interface) error {
	for _, ex := range o.examples {
		job := o.job(ex.job.Name)
		if ex.script == nil || job == nil {
			continue
		}
		if err := ex.script.step(ctx, client, job); err != nil {
			return err
		}
	}
	return nil
}

func (s *script) step(ctx context.Context, client kubernetes.Interface, job *batchv1.Job) error {
	ready := job.Status.Ready != nil && *job.Status.Ready == *job.Spec.Parallelism
	stopped := conditionTrue(job, batchv1.JobSuspended) && job.Status.Active == 0 && job.Status.StartTime == nil
	switch {
	case !s.suspended && ready && job.Status.StartTime != nil:
		s.suspended, s.firstStart = true, job.Status.StartTime.Time
		return suspend(ctx, client, job, true)
	case s.suspended && !s.resumed && stopped && time.Since(s.firstStart) > 2*time.Second:
		s.resumed = true
		return suspend(ctx, client, job, false)
	}
	return nil
}

func suspend(ctx context.Context, client kubernetes.Interface, job *batchv1.Job, on bool) error {
	patch := fmt.Sprintf(`{"spec":{"suspend":%t}}`, on)
	_, err := client.BatchV1().Jobs(job.Namespace).Patch(ctx, job.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("set suspend of Job %s: %w", job.Name, err)
	}
	return nil
}

// jobLogs returns the logs of a Job's pods that are still there.
func (o *observer) jobLogs(ctx context.Context, client kubernetes.Interface, job string) ([]string, error) {
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	var logs []string
	for _, pod := range pods.Items {
		log, err := podLog(ctx, client, pod.Name)
		if err != nil {
			return nil, err
		}
		logs = append(logs, log)
	}
	return logs, nil
}

func podLog(ctx context.Context, client kubernetes.Interface, pod string) (string, error) {
	stream, err := client.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{}).Stream(ctx)
	if err != nil {
		return "", fmt.Errorf("logs of pod %s: %w", pod, err)
	}
	defer stream.Close()
	log, err := io.ReadAll(stream)
	return string(log), err
}

func conditionTrue(job *batchv1.Job, conditionType batchv1.JobConditionType) bool {
	for _, c := range job.Status.Conditions {
		if c.Type == conditionType && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}
