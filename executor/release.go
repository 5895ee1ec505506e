package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
)

// errEnded: a pod that was to be deleted uncounted has ended by itself.
var errEnded = errors.New("pod has ended")

// errPutBack: a finalizer was removed, and somebody (an admission webhook) put it
// back in the same request.
var errPutBack = errors.New("finalizer was put back")

// patchTries is how often a pod that keeps changing is patched as it was seen.
const patchTries = 5

// metadataPatch is a strategic merge patch of a pod's metadata.
type metadataPatch struct {
	Metadata patchMeta `json:"metadata"`
}

type patchMeta struct {
	// UID is a precondition: the API server refuses to change it.
	UID types.UID `json:"uid"`
	// ResourceVersion is one too: the pod must be as it was seen.
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

func (m patchMeta) bytes() []byte {
	b, err := json.Marshal(metadataPatch{Metadata: m})
	if err != nil {
		panic(fmt.Sprintf("a patch of strings does not marshal: %v", err))
	}
	return b
}

// releasePatch takes the tracking finalizer away, and nothing else.
func releasePatch(uid types.UID) []byte {
	return patchMeta{UID: uid, DeleteFinalizers: []string{batchv1.JobTrackingFinalizer}}.bytes()
}

// patchAsSeen patches a pod only if it is as it was seen. One that has changed is
// read anew, and wanted says what the patch is to be then, and false if none is to
// be made any more. It returns what patchPod does, and the pod as it was last seen if
// there was nothing to do.
func (e *Executor) patchAsSeen(ctx context.Context, s *jobState, pod *podcache.Pod, wanted func(*podcache.Pod) (patchMeta, bool)) (*podcache.Pod, error) {
	var conflict error
	for range patchTries {
		meta, ok := wanted(pod)
		if !ok {
			return pod, nil
		}
		meta.UID, meta.ResourceVersion = pod.UID, pod.ResourceVersion
		after, err := e.patchPod(ctx, s, pod, meta.bytes())
		if !apierrors.IsConflict(err) {
			return after, err
		}
		live, readErr := e.livePod(ctx, s, pod)
		if readErr != nil || live.UID != pod.UID {
			return nil, err
		}
		pod, conflict = live, err
	}
	return nil, conflict
}

// releaseRunning removes the finalizer from a pod that is about to be deleted
// and is not to be counted. If the pod has ended meanwhile, it is to be counted
// after all (invariant I1): errEnded, and the next round knows.
func (e *Executor) releaseRunning(ctx context.Context, s *jobState, pod *podcache.Pod) (gone bool, err error) {
	after, err := e.patchAsSeen(ctx, s, pod, func(pod *podcache.Pod) (patchMeta, bool) {
		return patchMeta{DeleteFinalizers: []string{batchv1.JobTrackingFinalizer}}, !pod.Ended()
	})
	switch {
	case err != nil:
		return false, fmt.Errorf("pod %s: %w", pod.Name, err)
	case after == nil:
		return true, nil
	case after.Ended():
		return false, fmt.Errorf("pod %s: %w", pod.Name, errEnded)
	case after.Held:
		return false, fmt.Errorf("pod %s: %w", pod.Name, errPutBack)
	}
	return false, nil
}

// releasePods removes the tracking finalizer from the pods. What is confirmed
// by the API server is confirmed in the next snapshot. A pod whose finalizer is put
// back does not keep the others from being released, and is tried again later.
func (e *Executor) releasePods(ctx context.Context, s *jobState, uids [][]byte) error {
	return s.patching.Do(ctx, len(uids), func(ctx context.Context, i int) error {
		uid, err := wire.UIDString(uids[i])
		if err != nil {
			return fmt.Errorf("release: %w", err)
		}
		pod, known := s.pods.Pod(uid)
		if !known || !pod.Held || s.releaseHeld(uid) {
			return nil
		}
		err = e.release(ctx, s, pod)
		if errors.Is(err, errPutBack) {
			e.holdRelease(ctx, s, pod)
			return nil
		}
		return err
	})
}

// release removes the finalizer from one pod. That there is no such pod any more is
// as good. errPutBack: the API server answers that the pod holds it all the same.
func (e *Executor) release(ctx context.Context, s *jobState, pod *podcache.Pod) (err error) {
	ctx, end := e.span(ctx, SpanFinalizerReleased, AttrPodName.String(pod.Name), AttrPodUID.String(string(pod.UID)))
	defer func() { end(err) }()
	after, err := e.patchPod(ctx, s, pod, releasePatch(pod.UID))
	if err == nil && after != nil && after.Held {
		err = errPutBack
	}
	if err != nil {
		return fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	trace.SpanFromContext(ctx).AddEvent(EventReleaseConfirmed)
	return nil
}

func annotate(ctx context.Context, attrs ...attribute.KeyValue) {
	trace.SpanFromContext(ctx).SetAttributes(attrs...)
}
