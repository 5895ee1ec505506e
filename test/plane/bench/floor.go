package bench

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof" // the floor may be profiled, as the others
	"os"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"syscall"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// floorEnv makes the test binary behave as the floor.
const floorEnv = "JOBPOLICY_BENCH_FLOOR"

// floorWriters is how many writes the floor has in flight: as many as the
// executor.
const floorWriters = 64

// The floor takes fewer calls than any controller can: it is a client that creates the pods
// of Jobs and releases their finalizers, and does nothing else. It decides
// nothing, writes no status and no event, retries nothing, and would not survive
// its own restart.
type floor struct {
	client kubernetes.Interface
	// large is the work for Jobs of many pods; small is the work for Jobs of one pod, which
	// does not wait behind large.
	large, small *backlog
	broken       context.CancelCauseFunc

	mu   sync.Mutex
	jobs map[types.UID]*floorJob
	pods map[types.UID]bool // those whose end was seen
}

// A floorJob is the progress of a Job.
type floorJob struct {
	*batchv1.Job
	created, active int32
}

// RunFloor is the main function of the floor's process.
func RunFloor(args []string) error {
	flags := flag.NewFlagSet("floor", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig file")
	qps := flags.Float64("kube-api-qps", 0, "requests per second")
	burst := flags.Int("kube-api-burst", 0, "requests at once")
	address := flags.String("http-address", "", "host:port for profiles")
	writes := flags.Int("large-job-writes", floorWriters, "writes in flight for Jobs of many pods")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst, config.ContentType = float32(*qps), *burst, runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	signalled, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, broken := context.WithCancelCause(signalled)
	defer broken(nil)
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	go func() { broken(http.Serve(listener, nil)) }()
	f := &floor{
		client: client, large: newBacklog(*writes), small: newBacklog(floorWriters), broken: broken,
		jobs: map[types.UID]*floorJob{}, pods: map[types.UID]bool{},
	}
	f.run(ctx)
	if signalled.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}

func (f *floor) run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() {
		follow(ctx, f.client, f.client.BatchV1().Jobs(metav1.NamespaceAll), &batchv1.Job{}, seer[*batchv1.Job](func(job *batchv1.Job, gone bool) { f.seeJob(ctx, job, gone) }))
	})
	both.Go(func() {
		follow(ctx, f.client, f.client.CoreV1().Pods(metav1.NamespaceAll), &corev1.Pod{}, seer[*corev1.Pod](func(p *corev1.Pod, gone bool) { f.seePod(ctx, p, gone) }))
	})
	both.Wait()
	f.large.close()
	f.small.close()
}

// todo is the backlog for the work of a Job; job is nil if the Job is gone.
func (f *floor) todo(job *floorJob) *backlog {
	if job != nil && *job.Spec.Completions == 1 {
		return f.small
	}
	return f.large
}

func (f *floor) seeJob(ctx context.Context, job *batchv1.Job, gone bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if gone {
		delete(f.jobs, job.UID)
		return
	}
	if f.jobs[job.UID] == nil {
		f.jobs[job.UID] = &floorJob{Job: job}
		f.fill(ctx, f.jobs[job.UID])
	}
}

// fill creates as many pods as the Job may have at once. f.mu must be held.
func (f *floor) fill(ctx context.Context, job *floorJob) {
	for job.active < *job.Spec.Parallelism && job.created < *job.Spec.Completions {
		pod := floorPod(job.Job, job.created)
		job.created++
		job.active++
		f.todo(job).add(func() {
			if _, err := f.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				f.broken(fmt.Errorf("create pod: %w", err))
			}
		})
	}
}

func (f *floor) seePod(ctx context.Context, p *corev1.Pod, gone bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if gone {
		delete(f.pods, p.UID)
		return
	}
	ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	if !ended || f.pods[p.UID] || !slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer) {
		return
	}
	f.pods[p.UID] = true
	var job *floorJob
	if owner := metav1.GetControllerOfNoCopy(p); owner != nil {
		job = f.jobs[owner.UID]
	}
	f.todo(job).add(func() { f.release(ctx, p) })
	if job == nil {
		return
	}
	job.active--
	f.fill(ctx, job)
}

func (f *floor) release(ctx context.Context, p *corev1.Pod) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": p.UID, "$deleteFromPrimitiveList/finalizers": []string{batchv1.JobTrackingFinalizer},
	}})
	if err == nil {
		_, err = f.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		f.broken(fmt.Errorf("release pod: %w", err))
	}
}

// floorPod is the pod that a Job controller would create.
func floorPod(job *batchv1.Job, index int32) *corev1.Pod {
	template := job.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.GenerateName = job.Namespace, job.Name+"-"
	pod.Finalizers = []string{batchv1.JobTrackingFinalizer}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	if job.Spec.CompletionMode == nil || *job.Spec.CompletionMode != batchv1.IndexedCompletion {
		return pod
	}
	number := strconv.Itoa(int(index))
	pod.GenerateName += number + "-"
	pod.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: number}
	pod.Labels[batchv1.JobCompletionIndexAnnotation] = number
	pod.Spec.Hostname = job.Name + "-" + number
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{
		Name: "JOB_COMPLETION_INDEX",
		ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
			FieldPath: "metadata.labels['" + batchv1.JobCompletionIndexAnnotation + "']",
		}},
	}}
	return pod
}
