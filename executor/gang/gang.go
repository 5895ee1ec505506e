// Package gang finds or creates the Workload and the PodGroup of a Job whose pods are to
// be scheduled together.
//
// References between these objects contain names; ownership is checked by UID. The
// package keeps no state: the name of an object follows from the Job's UID, so an object
// that is not in the cache yet is found by name.
package gang

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulinginformers "k8s.io/client-go/informers/scheduling/v1beta1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"jobpolicy.dev/executor/api"
	"jobpolicy.dev/executor/apiserver"
	"jobpolicy.dev/executor/informer"
	"jobpolicy.dev/executor/telemetry"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// eventWorkloadCreated is the reason of the event on a Job whose Workload was created, as
// in the built-in controller.
const eventWorkloadCreated = "WorkloadCreated"

// errNoGang: the objects in the cluster cannot be the Job's gang. Its pods are scheduled
// one by one.
var errNoGang = errors.New("no gang")

// errNoWorkload: no Workload was created before the Job began, or it was deleted.
var errNoWorkload = fmt.Errorf("there is no Workload, and the Job has begun: %w", errNoGang)

// ownerIndex finds Workloads by the name of their Job, and PodGroups by the name of their
// Workload.
const ownerIndex = "gang"

// Config is what Gangs are made of. All fields but Server and Namespaces are required.
type Config struct {
	API *api.Client
	// Server tells whether the API server serves gangs. nil: it does.
	Server *apiserver.Server
	// Namespaces: see controller.Config.
	Namespaces []string
	Recorder   record.EventRecorder
	Logger     *slog.Logger
}

// Gangs are the Workloads and PodGroups of the cluster. A gang is one of each: the
// Workload says how a Job's pods are to be scheduled, and the pods name the PodGroup.
// A nil *Gangs has no informers. Its Ensure must not be asked for a gang.
type Gangs struct {
	cfg                  Config
	workloads, podGroups *informer.Set
}

// New returns Gangs. Their informers need an API server that serves
// scheduling.k8s.io/v1beta1, and permission to read it.
func New(cfg Config) (*Gangs, error) {
	g := &Gangs{
		cfg: cfg,
		workloads: informer.New(cfg.Namespaces, func(namespace string) cache.SharedIndexInformer {
			return schedulinginformers.NewFilteredWorkloadInformer(cfg.API.Kubernetes, namespace, 0,
				cache.Indexers{ownerIndex: workloadsByJob}, api.ConsistentList)
		}),
		podGroups: informer.New(cfg.Namespaces, func(namespace string) cache.SharedIndexInformer {
			return schedulinginformers.NewFilteredPodGroupInformer(cfg.API.Kubernetes, namespace, 0,
				cache.Indexers{ownerIndex: podGroupsByWorkload}, api.ConsistentList)
		}),
	}
	for _, set := range g.Informers() {
		if err := set.SetTransform(informer.WithoutManagedFields); err != nil {
			return nil, fmt.Errorf("gang transform: %w", err)
		}
	}
	return g, nil
}

// Informers are the informers to run.
func (g *Gangs) Informers() []*informer.Set {
	if g == nil {
		return nil
	}
	return []*informer.Set{g.workloads, g.podGroups}
}

func workloadsByJob(obj any) ([]string, error) {
	w, ok := obj.(*schedulingv1beta1.Workload)
	if !ok || w.Spec.ControllerRef == nil || w.Spec.ControllerRef.APIGroup != batchv1.GroupName || w.Spec.ControllerRef.Kind != wire.JobKind.Kind {
		return nil, nil
	}
	return []string{w.Namespace + "/" + w.Spec.ControllerRef.Name}, nil
}

func podGroupsByWorkload(obj any) ([]string, error) {
	g, ok := obj.(*schedulingv1beta1.PodGroup)
	if !ok || g.Spec.WorkloadRef == nil {
		return nil, nil
	}
	return []string{g.Namespace + "/" + g.Spec.WorkloadRef.WorkloadName}, nil
}

// Ensure finds or creates the PodGroup for a Job's pods and returns its name. The name is
// empty if the decision asks for no gang, or if the pods have to be scheduled one by one.
func (g *Gangs) Ensure(ctx context.Context, refusals *writes.Refusals, job *batchv1.Job, want *jobpolicyv1.Gang) (podGroup string, err error) {
	if want == nil {
		return "", nil
	}
	ctx, end := g.cfg.API.Tracer.Span(ctx, telemetry.SpanGangEnsured)
	defer func() { end(err) }()
	of := api.Subject{Object: job, Refusals: refusals}
	if err = g.usable(ctx); err != nil {
		g.cfg.Recorder.Eventf(job, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
		return "", err
	}
	workload, err := g.workload(ctx, of, job, want)
	if err == nil {
		podGroup, err = g.podGroup(ctx, of, job, workload)
	}
	if err == nil || errors.Is(err, errNoGang) {
		refusals.Over(writes.CreateWorkload, writes.CreatePodGroup)
	}
	if errors.Is(err, errNoGang) {
		g.cfg.Logger.InfoContext(ctx, "pods of a gang are scheduled one by one", append(telemetry.JobAttrs(job), slog.Any("reason", err))...)
		return "", nil
	}
	if api.NamespaceTerminating(err) {
		return "", api.ErrNamespaceTerminating
	}
	if err != nil {
		g.cfg.Recorder.Eventf(job, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
	}
	return podGroup, err
}

// workload finds or creates the Job's Workload.
func (g *Gangs) workload(ctx context.Context, of api.Subject, job *batchv1.Job, want *jobpolicyv1.Gang) (*schedulingv1beta1.Workload, error) {
	found, err := gangObjects[*schedulingv1beta1.Workload](g.workloads, job, job.Name)
	if err != nil {
		return nil, err
	}
	if len(found) > 1 {
		return nil, fmt.Errorf("%d Workloads refer to the Job: %w", len(found), errNoGang)
	}
	if len(found) == 1 {
		return checkWorkload(job, found[0])
	}
	if want.GetMayCreate() {
		return g.createWorkload(ctx, of, job, want.GetMinCount())
	}
	return g.readWorkload(ctx, job)
}

func (g *Gangs) createWorkload(ctx context.Context, of api.Subject, job *batchv1.Job, minCount int32) (*schedulingv1beta1.Workload, error) {
	w, err := g.cfg.API.CreateWorkload(ctx, of, NewWorkload(job, minCount))
	if apierrors.IsAlreadyExists(err) {
		found, readErr := g.readWorkload(ctx, job)
		if !errors.Is(readErr, errNoWorkload) {
			return found, readErr
		}
		// It was deleted in between. The Job has not begun, so another try may create it.
	}
	if err != nil {
		return nil, fmt.Errorf("workload: %w", err)
	}
	g.cfg.Recorder.Eventf(job, corev1.EventTypeNormal, eventWorkloadCreated, "Created Workload %s for Job %s", w.Name, job.Name)
	return checkWorkload(job, w) // Admission may have changed it.
}

// readWorkload reads the Job's Workload from the API server: the cache may not show it yet.
func (g *Gangs) readWorkload(ctx context.Context, job *batchv1.Job) (*schedulingv1beta1.Workload, error) {
	w, err := g.cfg.API.Workload(ctx, job.Namespace, WorkloadName(job))
	if errors.Is(err, api.ErrGone) {
		return nil, errNoWorkload
	}
	if err != nil {
		return nil, fmt.Errorf("workload: %w", err)
	}
	return checkWorkload(job, w)
}

func checkWorkload(job *batchv1.Job, w *schedulingv1beta1.Workload) (*schedulingv1beta1.Workload, error) {
	if !metav1.IsControlledBy(w, job) {
		return nil, fmt.Errorf("the Job does not control Workload %s: %w", w.Name, errNoGang)
	}
	if n := len(w.Spec.PodGroupTemplates); n != 1 {
		return nil, fmt.Errorf("the Workload %s has %d templates of pod groups: %w", w.Name, n, errNoGang)
	}
	return w, nil
}

// podGroup finds or creates the PodGroup of the Workload's only template.
func (g *Gangs) podGroup(ctx context.Context, of api.Subject, job *batchv1.Job, w *schedulingv1beta1.Workload) (string, error) {
	found, err := gangObjects[*schedulingv1beta1.PodGroup](g.podGroups, job, w.Name)
	if err != nil {
		return "", err
	}
	if len(found) > 1 {
		return "", fmt.Errorf("%d PodGroups refer to Workload %s: %w", len(found), w.Name, errNoGang)
	}
	if len(found) == 1 {
		return checkPodGroup(job, found[0])
	}
	made, err := g.cfg.API.EnsurePodGroup(ctx, of, NewPodGroup(job, w))
	if err != nil {
		return "", fmt.Errorf("pod group: %w", err)
	}
	return checkPodGroup(job, made)
}

func checkPodGroup(job *batchv1.Job, group *schedulingv1beta1.PodGroup) (string, error) {
	if !metav1.IsControlledBy(group, job) {
		return "", fmt.Errorf("the Job does not control PodGroup %s: %w", group.Name, errNoGang)
	}
	return group.Name, nil
}

// gangObjects lists the objects that refer to the owner by name. It leaves out objects of
// an earlier Job of the same name (invariant I8).
func gangObjects[T metav1.Object](informers *informer.Set, job *batchv1.Job, owner string) ([]T, error) {
	objects, err := informers.In(job.Namespace).GetIndexer().ByIndex(ownerIndex, job.Namespace+"/"+owner)
	if err != nil {
		return nil, err
	}
	var found []T
	for _, obj := range objects {
		if o, ok := obj.(T); ok && !leftOver(job, o) {
			found = append(found, o)
		}
	}
	return found, nil
}

func leftOver(job *batchv1.Job, o metav1.Object) bool {
	ref := wire.ControllerOf(o, wire.JobKind.GroupKind())
	return ref != nil && ref.Name == job.Name && ref.UID != job.UID
}
