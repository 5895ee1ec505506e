package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulinginformers "k8s.io/client-go/informers/scheduling/v1alpha2"
	"k8s.io/client-go/tools/cache"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// EventWorkloadCreated is the reason of the event on a Job that got a Workload,
// as upstream has it.
const EventWorkloadCreated = "WorkloadCreated"

// errNoGang: what there is in the cluster cannot be the Job's gang. Its pods
// are scheduled one by one, as if there were nothing.
var errNoGang = errors.New("no gang")

// gangIndex finds Workloads by the Job that they refer to, and PodGroups by the
// Workload. The references hold names only; who owns an object is told by UID.
const gangIndex = "gang"

// gangs are the Workloads and PodGroups of the cluster. A gang is one of each:
// the Workload says how a Job's pods are to be scheduled, and the pods name the
// PodGroup.
type gangs struct {
	workloads, podGroups cache.SharedIndexInformer
}

// buildGangs makes the informers that Config.WorkloadWithJob asks for. Without
// it, the executor needs no rights to what they read, and no API server that
// serves it.
func (e *Executor) buildGangs() error {
	if !e.cfg.WorkloadWithJob {
		return nil
	}
	e.gangs = &gangs{
		workloads: schedulinginformers.NewFilteredWorkloadInformer(e.cfg.Client, metav1.NamespaceAll, 0,
			cache.Indexers{gangIndex: workloadsByJob}, consistentRead),
		podGroups: schedulinginformers.NewFilteredPodGroupInformer(e.cfg.Client, metav1.NamespaceAll, 0,
			cache.Indexers{gangIndex: podGroupsByWorkload}, consistentRead),
	}
	for _, informer := range e.gangs.informers() {
		if err := informer.SetTransform(trimGangObject); err != nil {
			return fmt.Errorf("gang transform: %w", err)
		}
	}
	return nil
}

// trimGangObject is the transform of both informers.
func trimGangObject(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return obj, nil
}

// informers is empty without a gate.
func (g *gangs) informers() []cache.SharedIndexInformer {
	if g == nil {
		return nil
	}
	return []cache.SharedIndexInformer{g.workloads, g.podGroups}
}

func (g *gangs) synced() []cache.InformerSynced {
	var synced []cache.InformerSynced
	for _, informer := range g.informers() {
		synced = append(synced, informer.HasSynced)
	}
	return synced
}

func workloadsByJob(obj any) ([]string, error) {
	w, ok := obj.(*schedulingv1alpha2.Workload)
	if !ok || w.Spec.ControllerRef == nil || w.Spec.ControllerRef.APIGroup != batchv1.GroupName || w.Spec.ControllerRef.Kind != jobKind.Kind {
		return nil, nil
	}
	return []string{w.Namespace + "/" + w.Spec.ControllerRef.Name}, nil
}

func podGroupsByWorkload(obj any) ([]string, error) {
	g, ok := obj.(*schedulingv1alpha2.PodGroup)
	if !ok || g.Spec.PodGroupTemplateRef == nil || g.Spec.PodGroupTemplateRef.Workload == nil {
		return nil, nil
	}
	return []string{g.Namespace + "/" + g.Spec.PodGroupTemplateRef.Workload.WorkloadName}, nil
}

// ensureGang returns the name of the PodGroup for a Job's pods, which it finds
// or makes. It is empty if the decision asks for none, or if the pods have to be
// scheduled one by one.
//
// Nothing is remembered between rounds: what has been made and is not seen yet
// is found by its name, which follows from the Job's UID.
func (e *Executor) ensureGang(ctx context.Context, job *batchv1.Job, want *jobpolicyv1.Gang) (podGroup string, err error) {
	if want == nil {
		return "", nil
	}
	ctx, end := e.span(ctx, SpanGangEnsured)
	defer func() { end(err) }()
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	workload, err := e.workload(ctx, job, want)
	if err == nil {
		podGroup, err = e.podGroup(ctx, job, workload)
	}
	if errors.Is(err, errNoGang) {
		e.log.InfoContext(ctx, "pods of a gang are scheduled one by one", append(jobAttrs(job), slog.Any("reason", err))...)
		return "", nil
	}
	if namespaceTerminating(err) {
		return "", errNamespaceTerminating
	}
	if err != nil {
		e.recorder.Eventf(job, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
	}
	return podGroup, err
}

// workload finds or makes the Job's Workload.
func (e *Executor) workload(ctx context.Context, job *batchv1.Job, want *jobpolicyv1.Gang) (*schedulingv1alpha2.Workload, error) {
	found, err := gangObjects[*schedulingv1alpha2.Workload](e.gangs.workloads, job, job.Name)
	if err != nil {
		return nil, err
	}
	if len(found) > 1 {
		return nil, fmt.Errorf("%d Workloads refer to the Job: %w", len(found), errNoGang)
	}
	if len(found) == 1 {
		return checkWorkload(job, found[0])
	}
	if want.GetMayBegin() {
		return e.createWorkload(ctx, job, want.GetMinCount())
	}
	return e.readWorkload(ctx, job)
}

func (e *Executor) createWorkload(ctx context.Context, job *batchv1.Job, minCount int32) (*schedulingv1alpha2.Workload, error) {
	w, err := e.cfg.Client.SchedulingV1alpha2().Workloads(job.Namespace).Create(ctx, newWorkload(job, minCount), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return e.readWorkload(ctx, job)
	}
	if err != nil {
		return nil, fmt.Errorf("workload: %w", err)
	}
	e.recorder.Eventf(job, corev1.EventTypeNormal, EventWorkloadCreated, "Created Workload %s for Job %s", w.Name, job.Name)
	return w, nil
}

// readWorkload looks for an own Workload that the cache does not show yet.
func (e *Executor) readWorkload(ctx context.Context, job *batchv1.Job) (*schedulingv1alpha2.Workload, error) {
	w, err := e.cfg.Client.SchedulingV1alpha2().Workloads(job.Namespace).Get(ctx, workloadName(job), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no Workload, and the Job has begun: %w", errNoGang)
	}
	if err != nil {
		return nil, fmt.Errorf("workload: %w", err)
	}
	return checkWorkload(job, w)
}

func checkWorkload(job *batchv1.Job, w *schedulingv1alpha2.Workload) (*schedulingv1alpha2.Workload, error) {
	if !metav1.IsControlledBy(w, job) {
		return nil, fmt.Errorf("the Job does not control Workload %s: %w", w.Name, errNoGang)
	}
	if n := len(w.Spec.PodGroupTemplates); n != 1 {
		return nil, fmt.Errorf("the Workload %s has %d templates of pod groups: %w", w.Name, n, errNoGang)
	}
	return w, nil
}

// podGroup finds or makes the PodGroup of the Workload's only template.
func (e *Executor) podGroup(ctx context.Context, job *batchv1.Job, w *schedulingv1alpha2.Workload) (string, error) {
	found, err := gangObjects[*schedulingv1alpha2.PodGroup](e.gangs.podGroups, job, w.Name)
	if err != nil {
		return "", err
	}
	if len(found) > 1 {
		return "", fmt.Errorf("%d PodGroups refer to Workload %s: %w", len(found), w.Name, errNoGang)
	}
	if len(found) == 1 {
		return checkPodGroup(job, found[0])
	}
	wanted := newPodGroup(job, w)
	groups := e.cfg.Client.SchedulingV1alpha2().PodGroups(job.Namespace)
	made, err := groups.Create(ctx, wanted, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		made, err = groups.Get(ctx, wanted.Name, metav1.GetOptions{})
	}
	if err != nil {
		return "", fmt.Errorf("pod group: %w", err)
	}
	return checkPodGroup(job, made)
}

func checkPodGroup(job *batchv1.Job, g *schedulingv1alpha2.PodGroup) (string, error) {
	if !metav1.IsControlledBy(g, job) {
		return "", fmt.Errorf("the Job does not control PodGroup %s: %w", g.Name, errNoGang)
	}
	return g.Name, nil
}

// gangObjects lists the objects whose reference names the owner, without those
// that are left of an earlier Job of the same name (invariant I8).
func gangObjects[T metav1.Object](informer cache.SharedIndexInformer, job *batchv1.Job, owner string) ([]T, error) {
	objects, err := informer.GetIndexer().ByIndex(gangIndex, job.Namespace+"/"+owner)
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
	ref := metav1.GetControllerOfNoCopy(o)
	return ref != nil && ref.APIVersion == jobKind.GroupVersion().String() && ref.Kind == jobKind.Kind &&
		ref.Name == job.Name && ref.UID != job.UID
}
