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

	"jobpolicy.dev/executor/leanpods"
	"jobpolicy.dev/executor/tracker"
)

// errEnded: a pod that was to be deleted uncounted has ended by itself.
var errEnded = errors.New("pod has ended")

// releaseTries is how often a release is tried on a pod that keeps changing.
const releaseTries = 5

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

// releaseRunning removes the finalizer from a pod that is about to be deleted
// and is not to be counted. If the pod has ended meanwhile, it is to be counted
// after all (invariant I1): errEnded, and the next round knows.
func (e *Executor) releaseRunning(ctx context.Context, s *jobState, pod *leanpods.Pod) (gone bool, err error) {
	for range releaseTries {
		if pod.Ended() {
			return false, fmt.Errorf("pod %s: %w", pod.Name, errEnded)
		}
		gone, err = e.releaseWith(ctx, s, pod, patchMeta{
			UID: pod.UID, ResourceVersion: pod.ResourceVersion, DeleteFinalizers: []string{batchv1.JobTrackingFinalizer},
		}.bytes())
		if !apierrors.IsConflict(err) {
			return gone, err
		}
		live, readErr := e.livePod(ctx, s, pod)
		if readErr != nil || live.UID != pod.UID {
			return false, err
		}
		pod = live
	}
	return false, err
}

// releasePods removes the tracking finalizer from the pods. What is confirmed
// by the API server is confirmed in the next snapshot.
func (e *Executor) releasePods(ctx context.Context, s *jobState, uids [][]byte) error {
	return e.parallel(ctx, s, &s.patching, len(uids), func(ctx context.Context, i int) error {
		uid, err := tracker.UIDString(uids[i])
		if err != nil {
			return fmt.Errorf("release: %w", err)
		}
		pod, known := s.pods.Pod(uid)
		if !known || !pod.Held {
			return nil
		}
		_, err = e.release(ctx, s, pod)
		return err
	})
}

// release removes the finalizer from one pod. gone: there is no such pod, which
// is as good.
func (e *Executor) release(ctx context.Context, s *jobState, pod *leanpods.Pod) (gone bool, err error) {
	return e.releaseWith(ctx, s, pod, releasePatch(pod.UID))
}

func (e *Executor) releaseWith(ctx context.Context, s *jobState, pod *leanpods.Pod, patch []byte) (gone bool, err error) {
	ctx, end := e.span(ctx, SpanFinalizerReleased, AttrPodName.String(pod.Name), AttrPodUID.String(string(pod.UID)))
	defer func() { end(err) }()
	gone, err = e.patchPod(ctx, s, pod, patch)
	if err != nil {
		return false, fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	trace.SpanFromContext(ctx).AddEvent(EventReleaseConfirmed)
	return gone, nil
}

func annotate(ctx context.Context, attrs ...attribute.KeyValue) {
	trace.SpanFromContext(ctx).SetAttributes(attrs...)
}
