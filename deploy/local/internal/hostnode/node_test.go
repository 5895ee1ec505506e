package hostnode

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"jobpolicy.dev/deploy/local/must"
)

func newRegistrar(client *fake.Clientset) *registrar {
	return &registrar{client: client, name: "local", port: 12345, maxPods: 300, logger: slog.New(slog.DiscardHandler)}
}

func nodeOf(t *testing.T, client *fake.Clientset) *corev1.Node {
	t.Helper()
	node, err := client.CoreV1().Nodes().Get(t.Context(), "local", metav1.GetOptions{})
	must.Succeed(t, err)
	return node
}

func TestNodeIsRegistered(t *testing.T) {
	client := fake.NewClientset()
	must.Succeed(t, newRegistrar(client).register(t.Context()))
	node := nodeOf(t, client)
	if c := nodeCondition(&node.Status, corev1.NodeReady); c == nil || c.Status != corev1.ConditionTrue {
		t.Errorf("Ready is %+v", c)
	}
	if got := node.Status.DaemonEndpoints.KubeletEndpoint.Port; got != 12345 {
		t.Errorf("port is %d, want 12345", got)
	}
	if got := node.Status.Allocatable.Pods().Value(); got != 300 {
		t.Errorf("room for %d pods, want 300", got)
	}
	wantAddresses := []corev1.NodeAddress{{Type: "InternalIP", Address: "127.0.0.1"}, {Type: "Hostname", Address: "local"}}
	must.Equal(t, "addresses", wantAddresses, node.Status.Addresses)
	if got := node.Labels["kubernetes.io/hostname"]; got != "local" {
		t.Errorf("label kubernetes.io/hostname is %q", got)
	}
}

func TestTheLeaseIsTheNodes(t *testing.T) {
	client := fake.NewClientset()
	r := newRegistrar(client)
	must.Succeed(t, r.register(t.Context()))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go r.renewLease(ctx)
	eventually(t, "a lease that belongs to the Node", func() bool {
		lease, err := client.CoordinationV1().Leases("kube-node-lease").Get(ctx, "local", metav1.GetOptions{})
		return err == nil && *lease.Spec.HolderIdentity == "local" && *lease.Spec.LeaseDurationSeconds == 40 &&
			!lease.Spec.RenewTime.IsZero() && len(lease.OwnerReferences) == 1 && lease.OwnerReferences[0].Name == "local"
	})
}

func TestRestartedNodeTakesItsObjectOver(t *testing.T) {
	client := fake.NewClientset()
	first := newRegistrar(client)
	must.Succeed(t, first.register(t.Context()))
	node := nodeOf(t, client)
	node.Labels = map[string]string{"mine": "yes"}
	old := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].LastTransitionTime, node.Status.Conditions[i].LastHeartbeatTime = old, old
	}
	if _, err := client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	second := newRegistrar(client)
	second.port = 23456
	must.Succeed(t, second.register(t.Context()))
	node = nodeOf(t, client)
	if got := node.Status.DaemonEndpoints.KubeletEndpoint.Port; got != 23456 {
		t.Errorf("port is %d, want that of the second life", got)
	}
	if node.Labels["mine"] != "yes" || node.Labels["kubernetes.io/os"] != "linux" {
		t.Errorf("labels are %v", node.Labels)
	}
	ready := nodeCondition(&node.Status, corev1.NodeReady)
	if !ready.LastTransitionTime.Equal(&old) || !old.Before(&ready.LastHeartbeatTime) {
		t.Errorf("Ready has transition %s and heartbeat %s; only the heartbeat is new", ready.LastTransitionTime, ready.LastHeartbeatTime)
	}
}

func TestHeartbeatRepairsWhatOthersChanged(t *testing.T) {
	client := fake.NewClientset()
	r := newRegistrar(client)
	must.Succeed(t, r.register(t.Context()))
	node := nodeOf(t, client)
	nodeCondition(&node.Status, corev1.NodeReady).Status = corev1.ConditionUnknown
	if _, err := client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	must.Succeed(t, r.beat(t.Context()))
	node = nodeOf(t, client)
	if got := nodeCondition(&node.Status, corev1.NodeReady).Status; got != corev1.ConditionTrue {
		t.Errorf("Ready is %s, want True again", got)
	}
	must.Succeed(t, client.CoreV1().Nodes().Delete(t.Context(), "local", metav1.DeleteOptions{}))
	must.Succeed(t, r.beat(t.Context()))
	nodeOf(t, client) // fails if it was not created again
}

func TestQuietHeartbeatWritesNothing(t *testing.T) {
	client := fake.NewClientset()
	r := newRegistrar(client)
	must.Succeed(t, r.register(t.Context()))
	client.ClearActions()
	must.Succeed(t, r.beat(t.Context()))
	var writes []string
	for _, a := range client.Actions() {
		if a.GetVerb() != "get" {
			writes = append(writes, a.GetVerb()+" "+a.GetResource().Resource)
		}
	}
	if len(writes) > 0 {
		t.Errorf("writes: %q", writes)
	}
}

func TestRegistrationIsRepeatedUntilItWorks(t *testing.T) {
	client := fake.NewClientset()
	failures := 2
	client.PrependReactor("create", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		failures--
		return failures >= 0, nil, errors.New("not up yet")
	})
	must.Succeed(t, newRegistrar(client).register(t.Context()))
	nodeOf(t, client) // fails if registration ended without success
}
