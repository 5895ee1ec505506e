package api

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"go.opentelemetry.io/otel/trace"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Pods makes calls about the pods of one Job, or of a group that runs as a Job. It is made for
// one reconcile, and collects what its calls have changed.
type Pods struct {
	client *Client
	// owner and kind are those of the object that controls the pods.
	owner types.UID
	kind  schema.GroupKind
	job   *tracker.Job
	// recorder takes the events about these pods. nil: there are none.
	recorder record.EventRecorder
	// refusals remember which writes are refused; nil: none are remembered.
	refusals *writes.Refusals

	written, changed atomic.Bool
}

// Pods returns a Pods for a Job. recorder takes the events about the pods.
func (c *Client) Pods(job *tracker.Job, recorder record.EventRecorder) *Pods {
	return &Pods{client: c, owner: job.UID, kind: wire.JobKind.GroupKind(), job: job, recorder: recorder, refusals: &job.Refusals}
}

// GroupPods returns a Pods for a group of pods that owner controls. job has the group's pods, and
// observes no Job. There are no events, and no refusals are remembered.
func (c *Client) GroupPods(owner *metav1.OwnerReference, job *tracker.Job) *Pods {
	return &Pods{client: c, owner: owner.UID, kind: wire.KindOf(owner), job: job}
}

func (p *Pods) eventf(job *batchv1.Job, kind, reason, format string, args ...any) {
	if p.recorder != nil {
		p.recorder.Eventf(job, kind, reason, format, args...)
	}
}

// Written reports whether a write of these calls took effect.
func (p *Pods) Written() bool { return p.written.Load() }

// MarkWritten records that the Job's status was written. That is a write of this reconcile
// which Pods does not make itself; see Written.
func (p *Pods) MarkWritten() { p.written.Store(true) }

// Changed reports whether an answer showed a change. The watch will not report that change
// as new, so the Job has to be reconciled again.
func (p *Pods) Changed() bool { return p.changed.Load() }

// MarkChanged records that the answer to a call which Pods does not make itself showed a
// change; see Changed.
func (p *Pods) MarkChanged() { p.changed.Store(true) }

// Create creates a pod of the Job. ErrNamespaceTerminating: the namespace is being deleted.
// AlteredError: the pod does not count, and is to be deleted (DeleteAltered).
func (p *Pods) Create(ctx context.Context, job *batchv1.Job, pod *corev1.Pod, index int32) (err error) {
	ctx, end := p.client.Tracer.Span(ctx, telemetry.SpanPodCreated)
	defer func() { end(err) }()
	defer func() { p.client.written(Subject{job, p.refusals}, writes.CreatePod, "", "", err) }()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	inFlight := p.job.BeginCreate(index)
	created, err := p.client.Core.Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	var altered error
	if err == nil {
		altered = alteredPod(pod, created, job.Spec.Selector)
	}
	switch {
	case altered != nil:
		stray := podcache.From(created)
		inFlight.Altered(stray, p.owns(stray))
		err = altered
	case err == nil:
		inFlight.Created(podcache.From(created))
		p.written.Store(true)
		trace.SpanFromContext(ctx).SetAttributes(telemetry.AttrPodName.String(created.Name), telemetry.AttrPodUID.String(string(created.UID)))
		p.eventf(job, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %v", created.Name)
		return nil
	case NamespaceTerminating(err):
		inFlight.Refused()
		if unknown := p.client.confirmTerminating(ctx, pod.Namespace); unknown != nil {
			return errors.Join(unknown, err)
		}
		return ErrNamespaceTerminating
	case OutcomeUnknown(err):
		inFlight.Unknown(answered(err))
	default:
		inFlight.Refused()
	}
	p.eventf(job, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
	return err
}

// Delete deletes a pod as a decision says, and releases it first if it is not to be counted. A pod that does
// not exist any more counts as deleted. Without the finalizer another Job may have adopted
// the pod, so the deletion then requires the pod as it was seen last. ErrPodStarted: only a pod that has not
// started was to be deleted.
func (p *Pods) Delete(ctx context.Context, job *batchv1.Job, uid types.UID, d *jobpolicyv1.DeletePod) (err error) {
	pod, known := p.job.Pod(uid)
	if !known {
		return nil
	}
	ctx, end := p.client.Tracer.Span(ctx, telemetry.SpanPodDeleted, podAttrs(pod)...)
	defer func() { end(err) }()
	switch {
	case d.GetOnlyUnstarted():
		return p.deleteUnstarted(ctx, job, pod)
	case !pod.HasTrackingFinalizer:
		return p.deleteAsSeen(ctx, job, pod, p.owns)
	case !d.GetReleaseFirst():
		return p.delete(ctx, job, pod, metav1.Preconditions{UID: &uid})
	}
	released, err := p.releaseRunning(ctx, pod)
	switch {
	case err != nil:
		return fmt.Errorf("releasing before deletion: %w", err)
	case released == nil:
		return nil
	}
	return p.deleteAsSeen(ctx, job, released, p.owns)
}

// End has the pod ended by its node as a decision says, unless it has ended, is being deleted or has no longer
// time already. A pod that does not exist any more counts as ended. ErrDropped: the answer shows the pod with more time.
func (p *Pods) End(ctx context.Context, uid types.UID, e *jobpolicyv1.EndPod) (err error) {
	pod, known := p.job.Pod(uid)
	if !known {
		return nil
	}
	ctx, end := p.client.Tracer.Span(ctx, telemetry.SpanPodEnded, podAttrs(pod)...)
	defer func() { end(err) }()
	defer func() { p.ended(writes.EndPod, pod, err) }()
	goesOn := func(pod *podcache.Pod) bool {
		seconds, limited := pod.ActiveDeadline()
		longer := !limited || seconds > e.GetActiveDeadlineSeconds()
		return longer && p.owns(pod) && !pod.Ended() && !pod.Deleting
	}
	after, err := p.patchAsSeen(ctx, pod, func(pod *podcache.Pod) (podPatch, bool) {
		return podPatch{spec: &specPatch{e.GetActiveDeadlineSeconds()}}, goesOn(pod)
	})
	if err == nil && after != nil && goesOn(after) {
		err = ErrDropped
	}
	if err != nil {
		return fmt.Errorf("ending pod %s: %w", pod.Name, err)
	}
	return nil
}

// deleteUnstarted deletes a pod unless a container of it has run, or it has ended.
func (p *Pods) deleteUnstarted(ctx context.Context, job *batchv1.Job, pod *podcache.Pod) error {
	started := false
	err := p.deleteAsSeen(ctx, job, pod, func(pod *podcache.Pod) bool {
		live := p.owns(pod) && !pod.Deleting && !pod.Ended()
		started = live && !pod.Start().Unstarted
		return live && !started
	})
	if err == nil && started {
		return fmt.Errorf("pod %s: %w", pod.Name, ErrPodStarted)
	}
	return err
}

// DeleteRunning deletes a pod of the Job unless it has ended or is being deleted. What is known
// of the pod may be old, and the logs of a pod that has ended stay.
func (p *Pods) DeleteRunning(ctx context.Context, job *batchv1.Job, uid types.UID) (err error) {
	pod, known := p.job.Pod(uid)
	if !known {
		return nil
	}
	ctx, end := p.client.Tracer.Span(ctx, telemetry.SpanPodDeleted, podAttrs(pod)...)
	defer func() { end(err) }()
	return p.deleteAsSeen(ctx, job, pod, func(pod *podcache.Pod) bool {
		return !pod.Ended() && !pod.Deleting && p.owns(pod)
	})
}

// DeleteFinished deletes a pod of the Job that has finished and is accounted for. If somebody has put the tracking
// finalizer back, the pod stays.
func (p *Pods) DeleteFinished(ctx context.Context, job *batchv1.Job, uid types.UID) (err error) {
	pod, known := p.job.Pod(uid)
	if !known {
		return nil
	}
	ctx, end := p.client.Tracer.Span(ctx, telemetry.SpanPodDeleted, podAttrs(pod)...)
	defer func() { end(err) }()
	return p.deleteAsSeen(ctx, job, pod, func(pod *podcache.Pod) bool {
		return pod.Ended() && !pod.HasTrackingFinalizer && !pod.Deleting && p.owns(pod)
	})
}

// DeleteAltered releases and deletes a pod that admission has changed when it was created. Without
// its finalizer or its controller the pod may become another's. So it is deleted only if it still
// has the controller, or none, that it was created with.
func (p *Pods) DeleteAltered(ctx context.Context, job *batchv1.Job, pod *podcache.Pod) (err error) {
	ctx, end := p.client.Tracer.Span(ctx, telemetry.SpanPodDeleted, podAttrs(pod)...)
	defer func() {
		if err == nil {
			p.job.ForgetAltered(pod.UID)
		}
		end(err)
	}()
	controller, _ := pod.Controller()
	ours := func(pod *podcache.Pod) bool {
		now, _ := pod.Controller()
		return now.UID == controller.UID
	}
	released, err := p.patchAsSeen(ctx, pod, func(pod *podcache.Pod) (podPatch, bool) {
		return podPatch{DeleteFinalizers: []string{batchv1.JobTrackingFinalizer}}, pod.HasTrackingFinalizer && ours(pod)
	})
	if err == nil && released != nil && ours(released) && released.HasTrackingFinalizer {
		err = ErrPutBack
	}
	p.ended(writes.ReleasePod, pod, err)
	switch {
	case err != nil:
		return fmt.Errorf("releasing pod %s: %w", pod.Name, err)
	case released == nil || !ours(released):
		return nil
	}
	return p.deleteAsSeen(ctx, job, released, func(pod *podcache.Pod) bool { return ours(pod) && !pod.Deleting })
}

// deleteAsSeen deletes a pod only if it is as it was seen, as long as wanted returns true. If the
// pod has changed, it is read again.
func (p *Pods) deleteAsSeen(ctx context.Context, job *batchv1.Job, pod *podcache.Pod, wanted func(*podcache.Pod) bool) (err error) {
	defer func() { p.ended(writes.DeletePod, pod, err) }()
	var conflict error
	for range asSeenTries {
		if !wanted(pod) {
			return nil
		}
		err := p.delete(ctx, job, pod, metav1.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion})
		if !apierrors.IsConflict(err) {
			return err
		}
		live, readErr := p.read(ctx, pod)
		if readErr != nil || live.UID != pod.UID {
			return err
		}
		pod, conflict = live, err
	}
	p.eventf(job, corev1.EventTypeWarning, "FailedDelete", "Error deleting: %v", conflict)
	return conflict
}

// delete deletes a pod that fulfils the preconditions. A pod that does not exist any more
// counts as deleted.
func (p *Pods) delete(ctx context.Context, job *batchv1.Job, pod *podcache.Pod, preconditions metav1.Preconditions) (err error) {
	if preconditions.ResourceVersion == nil {
		defer func() { p.ended(writes.DeletePod, pod, err) }()
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = p.client.Core.Pods(pod.Namespace()).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &preconditions})
	if err == nil {
		// Otherwise the pod stays active until its deletion is seen: it is to count as failed before it is replaced. A
		// deletion that is repeated until then meets a conflict, and reads the pod.
		if preconditions.ResourceVersion == nil || !pod.HasTrackingFinalizer {
			p.job.PodDeleted(pod.UID)
		}
		p.written.Store(true)
		p.eventf(job, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %v", pod.Name)
		return nil
	}
	gone, err := p.client.podGone(ctx, pod, err)
	if gone {
		p.job.PodGone(pod.UID, tracker.Response)
		return nil
	}
	if preconditions.ResourceVersion == nil || !apierrors.IsConflict(err) {
		p.eventf(job, corev1.EventTypeWarning, "FailedDelete", "Error deleting: %v", err)
	}
	return err
}

// List reads the Job's pods from the API server, past every cache. It tells the outcome of
// creations without an answer.
func (p *Pods) List(ctx context.Context, job *batchv1.Job) (err error) {
	ctx, end := p.client.Tracer.Span(ctx, telemetry.SpanPodsListed)
	defer func() { end(err) }()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil {
		return fmt.Errorf("selector: %w", err)
	}
	list := p.job.BeginList()
	pods, err := p.client.Core.Pods(job.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		list.Cancel()
		return fmt.Errorf("listing pods: %w", err)
	}
	var owned []*podcache.Pod
	for i := range pods.Items {
		if pod := podcache.From(&pods.Items[i]); p.owns(pod) {
			owned = append(owned, pod)
		}
	}
	list.End(owned, pods.ResourceVersion)
	return nil
}

// read reads a pod from the API server.
func (p *Pods) read(ctx context.Context, pod *podcache.Pod) (*podcache.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	endCall := p.job.BeginCall()
	defer endCall()
	live, err := p.client.Core.Pods(pod.Namespace()).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading pod: %w", err)
	}
	return p.observe(live), nil
}

// observe makes an answer part of the tracker.
func (p *Pods) observe(answer *corev1.Pod) *podcache.Pod {
	pod := podcache.From(answer)
	if !p.owns(pod) {
		p.job.PodLeft(pod, tracker.Response)
		return pod
	}
	if p.job.ObservePod(pod, tracker.Response) == tracker.Relevant {
		p.changed.Store(true)
	}
	return pod
}

// owns reports whether the Job controls the pod.
func (p *Pods) owns(pod *podcache.Pod) bool {
	owner, controlled := pod.Controller()
	return controlled && owner.UID == p.owner && schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() == p.kind
}

// podGone finds out whether a write failed because its pod does not exist any more. If not,
// it returns the error.
func (c *Client) podGone(ctx context.Context, pod *podcache.Pod, err error) (bool, error) {
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
		return false, err
	}
	live, readErr := c.Core.Pods(pod.Namespace()).Get(ctx, pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(readErr) {
		return true, nil
	}
	if readErr == nil && live.UID != pod.UID {
		return true, nil
	}
	return false, err
}
