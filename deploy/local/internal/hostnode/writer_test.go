package hostnode

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"jobpolicy.dev/deploy/local/must"
)

// calls records the writes that reach a fake API server: "patch PHASE" and "delete UID GRACE".
type calls struct {
	mu   sync.Mutex
	list []string
	// fail answers the next writes; then they succeed.
	fail []error
	// hold, if set, is received from before every answer.
	hold chan struct{}
}

func (c *calls) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.list...)
}

func (c *calls) answer(call string) error {
	if c.hold != nil {
		<-c.hold
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, call)
	if len(c.fail) == 0 {
		return nil
	}
	err := c.fail[0]
	c.fail = c.fail[1:]
	return err
}

func (c *calls) react(action clienttesting.Action) (bool, runtime.Object, error) {
	switch a := action.(type) {
	case clienttesting.PatchAction:
		var body corev1.Pod
		if err := json.Unmarshal(a.GetPatch(), &body); err != nil {
			return true, nil, err
		}
		if a.GetSubresource() != "status" || body.UID != "u-1" {
			return true, nil, errors.New("not a status patch with the pod's uid")
		}
		return true, &corev1.Pod{}, c.answer("patch " + string(body.Status.Phase))
	case clienttesting.DeleteActionImpl:
		options := a.DeleteOptions
		if *options.GracePeriodSeconds != 0 || *options.Preconditions.UID != "u-1" {
			return true, nil, errors.New("not a final deletion of the pod with that uid")
		}
		return true, nil, c.answer("delete")
	}
	return false, nil, nil
}

func startWriter(t *testing.T, c *calls) *statusWriter {
	t.Helper()
	client := fake.NewClientset()
	client.PrependReactor("*", "pods", c.react)
	w := newStatusWriter(client, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		w.run(ctx)
		close(done)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return w
}

func updateOf(s *corev1.PodStatus, remove bool) podUpdate {
	return podUpdate{namespace: "ns", name: "p", uid: "u-1", status: s, remove: remove}
}

var (
	running1  = &corev1.PodStatus{Phase: corev1.PodRunning}
	succeeded = &corev1.PodStatus{Phase: corev1.PodSucceeded}
)

func (c *calls) await(t *testing.T, want ...string) {
	t.Helper()
	eventually(t, "all writes", func() bool { return len(c.all()) >= len(want) })
	must.Equal(t, "writes", want, c.all())
}

func TestStatusesThatWaitAreMerged(t *testing.T) {
	c := &calls{hold: make(chan struct{})}
	w := startWriter(t, c)
	w.put(updateOf(&corev1.PodStatus{Phase: corev1.PodPending}, false))
	c.hold <- struct{}{} // the first write is under way now, and the next two wait for it
	w.put(updateOf(running1, false))
	w.put(updateOf(succeeded, false))
	close(c.hold)
	eventually(t, "the last status", func() bool { l := c.all(); return len(l) > 0 && l[len(l)-1] == "patch Succeeded" })
	if got := c.all(); got[0] != "patch Pending" || len(got) > 3 {
		t.Errorf("writes are %q", got)
	}
}

func TestFinalStatusIsWrittenBeforeTheDeletionAndOnce(t *testing.T) {
	c := &calls{}
	w := startWriter(t, c)
	w.put(updateOf(succeeded, false))
	c.await(t, "patch Succeeded")
	w.put(updateOf(succeeded, true))
	c.await(t, "patch Succeeded", "delete")
}

func TestFailedWritesAreRepeated(t *testing.T) {
	server := apierrors.NewInternalError(errors.New("down"))
	c := &calls{fail: []error{server, server, nil, server}}
	w := startWriter(t, c)
	w.put(updateOf(succeeded, true))
	c.await(t, "patch Succeeded", "patch Succeeded", "patch Succeeded", "delete", "delete")
}

func TestPointlessWritesAreGivenUp(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, err := range map[string]error{
		"the pod is gone":       apierrors.NewNotFound(pods, "p"),
		"the status is invalid": apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil),
	} {
		t.Run(name, func(t *testing.T) {
			c := &calls{}
			w := startWriter(t, c)
			if got := w.unlessPointless(updateOf(running1, false), err); got != nil {
				t.Errorf("%v is to be repeated", got)
			}
		})
	}
	w := startWriter(t, &calls{})
	conflict := apierrors.NewConflict(pods, "p", errors.New("uid"))
	if w.unlessPointless(updateOf(running1, false), conflict) == nil {
		t.Error("a conflict is given up, although it may be a passing one")
	}
}

func TestForgottenPodIsNotWritten(t *testing.T) {
	c := &calls{}
	w := newStatusWriter(fake.NewClientset(), slog.New(slog.DiscardHandler))
	w.client.(*fake.Clientset).PrependReactor("*", "pods", c.react)
	w.put(updateOf(running1, false))
	w.forget("u-1")
	must.Succeed(t, w.sync(t.Context(), "u-1"))
	if got := c.all(); len(got) > 0 {
		t.Errorf("writes are %q, want none", got)
	}
	if len(w.wanted)+len(w.written) > 0 {
		t.Error("the pod has left a trace in memory")
	}
}

// podObject is a pod of the test node as the API server holds it.
func podObject(name string, uid types.UID, containers ...corev1.Container) *corev1.Pod {
	pod := podOf(never, containers...)
	pod.ObjectMeta = metav1.ObjectMeta{Name: name, Namespace: "ns", UID: uid}
	pod.Spec.NodeName = "local"
	return pod
}
