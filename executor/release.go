package executor

import (
	"context"
	"encoding/json"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/tracker"
)

// metadataPatch is a strategic merge patch of a pod's metadata.
type metadataPatch struct {
	Metadata patchMeta `json:"metadata"`
}

type patchMeta struct {
	// UID is a precondition: the API server refuses to change it.
	UID              types.UID       `json:"uid"`
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

// releasePods removes the tracking finalizer from the pods. What is confirmed
// by the API server is confirmed in the next snapshot.
func (e *Executor) releasePods(ctx context.Context, s *jobState, uids [][]byte) error {
	return e.parallel(len(uids), func(i int) error {
		uid, err := tracker.UIDString(uids[i])
		if err != nil {
			return fmt.Errorf("release: %w", err)
		}
		pod, known := s.pods.Pod(uid)
		if !known || !tracker.HoldsFinalizer(pod) {
			return nil
		}
		_, err = e.release(ctx, s, pod)
		return err
	})
}

// release removes the finalizer from one pod. gone: there is no such pod, which
// is as good.
func (e *Executor) release(ctx context.Context, s *jobState, pod *corev1.Pod) (gone bool, err error) {
	ctx, end := e.span(ctx, SpanFinalizerReleased, AttrPodName.String(pod.Name), AttrPodUID.String(string(pod.UID)))
	defer func() { end(err) }()
	gone, err = e.patchPod(ctx, s, pod, releasePatch(pod.UID))
	if err != nil {
		return false, fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	trace.SpanFromContext(ctx).AddEvent(EventReleaseConfirmed)
	return gone, nil
}

func annotate(ctx context.Context, attrs ...attribute.KeyValue) {
	trace.SpanFromContext(ctx).SetAttributes(attrs...)
}
