package api

import (
	"context"
	"encoding/json"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/writes"
)

// asSeenTries is how often a write is tried that requires the version of the pod that was seen,
// if each try ends with a conflict.
const asSeenTries = 5

// wholePatch is a strategic merge patch of a pod.
type wholePatch struct {
	Metadata podPatch   `json:"metadata"`
	Spec     *specPatch `json:"spec,omitempty"`
}

type specPatch struct {
	ActiveDeadlineSeconds int64 `json:"activeDeadlineSeconds"`
}

// podPatch is what changes in a pod: its metadata, and its spec.
type podPatch struct {
	// spec is nil if it does not change.
	spec *specPatch

	// UID is a precondition: the API server refuses to change it.
	UID types.UID `json:"uid"`
	// ResourceVersion is a precondition, too: the pod must be as it was seen.
	ResourceVersion  string          `json:"resourceVersion,omitempty"`
	OwnerReferences  []ownerRefPatch `json:"ownerReferences,omitempty"`
	Finalizers       []string        `json:"finalizers,omitempty"`
	DeleteFinalizers []string        `json:"$deleteFromPrimitiveList/finalizers,omitempty"`
}

type ownerRefPatch struct {
	Patch              string    `json:"$patch,omitempty"`
	APIVersion         string    `json:"apiVersion,omitempty"`
	Kind               string    `json:"kind,omitempty"`
	Name               string    `json:"name,omitempty"`
	UID                types.UID `json:"uid"`
	Controller         bool      `json:"controller,omitempty"`
	BlockOwnerDeletion bool      `json:"blockOwnerDeletion,omitempty"`
}

func (m podPatch) bytes() []byte {
	b, err := json.Marshal(wholePatch{m, m.spec})
	if err != nil {
		panic(fmt.Sprintf("a patch of strings does not marshal: %v", err))
	}
	return b
}

// releasePatch takes the tracking finalizer away, and nothing else.
func releasePatch(uid types.UID) []byte {
	return podPatch{UID: uid, DeleteFinalizers: []string{batchv1.JobTrackingFinalizer}}.bytes()
}

// Release removes the tracking finalizer from a pod. A pod that does not exist any more
// counts as released. ErrPutBack: the answer shows the pod with its finalizer.
func (p *Pods) Release(ctx context.Context, pod *podcache.Pod) (err error) {
	ctx, end := p.client.Tracer.Span(ctx, telemetry.SpanFinalizerReleased, podAttrs(pod)...)
	defer func() { end(err) }()
	defer func() { p.ended(writes.ReleasePod, pod, err) }()
	after, err := p.patch(ctx, pod, releasePatch(pod.UID))
	if err == nil && after != nil && after.HasTrackingFinalizer {
		err = ErrPutBack
	}
	if err != nil {
		return fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	trace.SpanFromContext(ctx).AddEvent(telemetry.EventReleaseConfirmed)
	return nil
}

// ReleaseUnowned removes the tracking finalizer from a pod that no known Job controls. So an event
// about a refusal is on the pod itself.
func (c *Client) ReleaseUnowned(ctx context.Context, refusals *writes.Refusals, pod *podcache.Pod) (err error) {
	defer func() { c.written(Subject{namedPod(pod), refusals}, writes.ReleasePod, "", "", err) }()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	patched, err := c.Core.Pods(pod.Namespace()).Patch(ctx, pod.Name, types.StrategicMergePatchType, releasePatch(pod.UID), metav1.PatchOptions{})
	switch {
	case err == nil && podcache.From(patched).HasTrackingFinalizer:
		return ErrPutBack
	case err == nil:
		return nil
	}
	_, err = c.podGone(ctx, pod, err)
	return err
}

// Adopt makes the Job the pod's controller and adds the tracking finalizer, as long as
// wanted returns true. The patch requires the pod as it was seen: another executor may have
// adopted, counted and released it since, and with the finalizer it would count a second
// time (I2).
func (p *Pods) Adopt(ctx context.Context, ref *metav1.OwnerReference, pod *podcache.Pod, wanted func(*podcache.Pod) bool) (err error) {
	ctx, end := p.client.Tracer.Span(ctx, telemetry.SpanPodClaimed, podAttrs(pod)...)
	defer func() { end(err) }()
	defer func() { p.ended(writes.AdoptPod, pod, err) }()
	_, err = p.patchAsSeen(ctx, pod, func(pod *podcache.Pod) (podPatch, bool) {
		return podPatch{
			OwnerReferences: []ownerRefPatch{{
				APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: ref.UID, Controller: true, BlockOwnerDeletion: true,
			}},
			Finalizers: []string{batchv1.JobTrackingFinalizer},
		}, wanted(pod)
	})
	if err != nil {
		return fmt.Errorf("adopting pod %s: %w", pod.Name, err)
	}
	return nil
}

// Disown removes the Job's owner reference and the tracking finalizer from the pod, as long
// as wanted returns true. It returns the pod as it is then; nil if it does not exist any
// more.
func (p *Pods) Disown(ctx context.Context, pod *podcache.Pod, wanted func(*podcache.Pod) bool) (_ *podcache.Pod, err error) {
	ctx, end := p.client.Tracer.Span(ctx, telemetry.SpanPodClaimed, podAttrs(pod)...)
	defer func() { end(err) }()
	defer func() { p.ended(writes.DisownPod, pod, err) }()
	after, err := p.patchAsSeen(ctx, pod, func(pod *podcache.Pod) (podPatch, bool) {
		return podPatch{
			OwnerReferences:  []ownerRefPatch{{Patch: "delete", UID: p.owner}},
			DeleteFinalizers: []string{batchv1.JobTrackingFinalizer},
		}, p.owns(pod) && wanted(pod)
	})
	if err != nil {
		return nil, fmt.Errorf("disowning pod %s: %w", pod.Name, err)
	}
	return after, nil
}

// releaseRunning removes the finalizer from a pod that is about to be deleted and is
// not to be counted. It returns the pod as it is then; nil: it does not exist any more, or the
// Job does not control it any more (invariant I9). ErrPodEnded: it has ended meanwhile and is to
// be counted after all (invariant I1).
func (p *Pods) releaseRunning(ctx context.Context, pod *podcache.Pod) (released *podcache.Pod, err error) {
	defer func() { p.ended(writes.ReleasePod, pod, err) }()
	after, err := p.patchAsSeen(ctx, pod, func(pod *podcache.Pod) (podPatch, bool) {
		return podPatch{DeleteFinalizers: []string{batchv1.JobTrackingFinalizer}}, p.owns(pod) && !pod.Ended()
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
	case after == nil || !p.owns(after):
		return nil, nil
	case after.Ended():
		return nil, fmt.Errorf("pod %s: %w", pod.Name, ErrPodEnded)
	case after.HasTrackingFinalizer:
		return nil, fmt.Errorf("pod %s: %w", pod.Name, ErrPutBack)
	}
	return after, nil
}

// patchAsSeen patches a pod only if it is as it was seen. If the pod has changed, it is
// read again. wanted returns the patch for a version of the pod, and false if there is
// nothing to patch. patchAsSeen returns what patch returns, or the pod as it was last
// seen if there was nothing to patch.
func (p *Pods) patchAsSeen(ctx context.Context, pod *podcache.Pod, wanted func(*podcache.Pod) (podPatch, bool)) (*podcache.Pod, error) {
	var conflict error
	for range asSeenTries {
		meta, ok := wanted(pod)
		if !ok {
			return pod, nil
		}
		meta.UID, meta.ResourceVersion = pod.UID, pod.ResourceVersion
		after, err := p.patch(ctx, pod, meta.bytes())
		if !apierrors.IsConflict(err) {
			return after, err
		}
		live, readErr := p.read(ctx, pod)
		if readErr != nil || live.UID != pod.UID {
			return nil, err
		}
		pod, conflict = live, err
	}
	return nil, conflict
}

// patch sends a strategic merge patch that carries the pod's UID, so that it cannot hit
// another pod of the same name. It returns the pod as the answer shows it; nil: there is
// no such pod any more.
func (p *Pods) patch(ctx context.Context, pod *podcache.Pod, patch []byte) (*podcache.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	endCall := p.job.BeginCall()
	defer endCall()
	patched, err := p.client.Core.Pods(pod.Namespace()).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err == nil && !deletedByWrite(patched) {
		if patched.ResourceVersion != pod.ResourceVersion {
			p.written.Store(true)
		}
		return p.observe(patched), nil
	}
	if err == nil {
		p.written.Store(true)
		p.job.PodGone(pod.UID, tracker.Response)
		return nil, nil
	}
	gone, err := p.client.podGone(ctx, pod, err)
	if gone {
		p.job.PodGone(pod.UID, tracker.Response)
	}
	return nil, err
}

// deletedByWrite reports whether a write has removed the last finalizer that the deletion
// of the pod waited for, so that the pod is gone. The answer to such a write has the
// resource version from before the write. The tracker would take it for an old observation,
// and believe that the pod still has its finalizer.
func deletedByWrite(pod *corev1.Pod) bool {
	grace := pod.DeletionGracePeriodSeconds
	return pod.DeletionTimestamp != nil && len(pod.Finalizers) == 0 && grace != nil && *grace == 0
}

// namedPod names a pod as the object of an event.
func namedPod(pod *podcache.Pod) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace(), Name: pod.Name, UID: pod.UID}}
}

// ended records how a write of a pod ended. If the Job does not exist any more, an event is on the pod.
func (p *Pods) ended(k writes.Kind, pod *podcache.Pod, err error) {
	if err == nil {
		p.refusals.Succeeded(k, string(pod.UID))
		return
	}
	subject := Subject{namedPod(pod), p.refusals}
	if job := p.job.Current(); job != nil {
		subject.Object = job
	}
	p.client.written(subject, k, pod.Name, string(pod.UID), err)
}

func podAttrs(pod *podcache.Pod) []attribute.KeyValue {
	return []attribute.KeyValue{telemetry.AttrPodName.String(pod.Name), telemetry.AttrPodUID.String(string(pod.UID))}
}
