package hostnode

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/version"
	"k8s.io/component-helpers/apimachinery/lease"
	kubeletutil "k8s.io/kubernetes/pkg/kubelet/util"
	"k8s.io/utils/clock"
)

const (
	// beatInterval is how often the lease is renewed and the Node looked at, each by itself.
	beatInterval = 10 * time.Second
	// leaseSeconds is how long the lease says the node may be silent.
	leaseSeconds = 40
	// reportInterval is the longest time between two writes of an unchanged node status.
	reportInterval = 5 * time.Minute
	// registerRetry is the pause after a registration that did not work.
	registerRetry = 500 * time.Millisecond
)

// The node claims to have plenty of everything, so that requests never keep a pod from being scheduled; only the number
// of pods is a real limit.
const (
	capacityCPU    = "1000"
	capacityMemory = "4Ti"
	capacityDisk   = "4Ti"
)

// registrar keeps the Node object and its lease.
type registrar struct {
	client  kubernetes.Interface
	name    string
	port    int32
	maxPods int
	logger  *slog.Logger
	// reported is when the node status was last written.
	reported time.Time
}

// register creates or refreshes the Node, again and again until it works or ctx ends. Only the first failure is worth a
// warning: an API server takes its time to come up.
func (r *registrar) register(ctx context.Context) error {
	level := slog.LevelWarn
	return wait.PollUntilContextCancel(ctx, registerRetry, true, func(ctx context.Context) (bool, error) {
		err := r.beat(ctx)
		if err == nil {
			return true, nil
		}
		if ctx.Err() == nil {
			r.logger.Log(ctx, level, "node is not registered yet", "node", r.name, "error", err)
			level = slog.LevelDebug
		}
		return false, nil
	})
}

// run registers the node and beats until ctx ends.
func (r *registrar) run(ctx context.Context) {
	if r.register(ctx) != nil {
		return // ctx has ended
	}
	r.logger.Info("node is registered", "node", r.name, "port", r.port)
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := r.beat(ctx); err != nil && ctx.Err() == nil {
			r.logger.Warn("node heartbeat was not written", "node", r.name, "error", err)
		}
	}, beatInterval)
}

// renewLease keeps the lease that the node lifecycle controller goes by, as the kubelet does, until ctx ends. The lease
// belongs to the Node and goes with it.
func (r *registrar) renewLease(ctx context.Context) {
	lease.NewController(clock.RealClock{}, r.client, r.name, leaseSeconds, nil, beatInterval, r.name, corev1.NamespaceNodeLease,
		kubeletutil.SetNodeOwnerFunc(ctx, r.client, r.name)).Run(ctx)
}

// beat makes the Node be as it should: it is created if it is absent, and rewritten if another has
// changed it (the node lifecycle controller after a silence, for one) or if the last report is old.
func (r *registrar) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, beatInterval)
	defer cancel()
	node, err := r.client.CoreV1().Nodes().Get(ctx, r.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		node, err = r.client.CoreV1().Nodes().Create(ctx, r.wanted(time.Now()), metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("node %s: %w", r.name, err)
	}
	if err := r.refresh(ctx, node); err != nil {
		return fmt.Errorf("node %s: %w", r.name, err)
	}
	return nil
}

func (r *registrar) refresh(ctx context.Context, node *corev1.Node) error {
	now := time.Now()
	want := r.wanted(now)
	if !hasAll(node.Labels, want.Labels) {
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": want.Labels}})
		if err != nil {
			return err
		}
		if _, err := r.client.CoreV1().Nodes().Patch(ctx, r.name, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	if now.Sub(r.reported) < reportInterval && sameStatus(&node.Status, &want.Status) {
		return nil
	}
	keepTransitions(&want.Status, &node.Status)
	body, err := json.Marshal(map[string]any{"status": want.Status})
	if err != nil {
		return err
	}
	if _, err := r.client.CoreV1().Nodes().Patch(ctx, r.name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status"); err != nil {
		return err
	}
	r.reported = now
	return nil
}

func hasAll(have, want map[string]string) bool {
	for key, value := range want {
		if have[key] != value {
			return false
		}
	}
	return true
}

// sameStatus compares what others may have changed, or an earlier life of the node may have written differently.
func sameStatus(have, want *corev1.NodeStatus) bool {
	for _, c := range want.Conditions {
		found := nodeCondition(have, c.Type)
		if found == nil || found.Status != c.Status {
			return false
		}
	}
	return have.DaemonEndpoints == want.DaemonEndpoints &&
		apiequality.Semantic.DeepEqual(have.Addresses, want.Addresses) &&
		apiequality.Semantic.DeepEqual(have.Capacity, want.Capacity)
}

func nodeCondition(s *corev1.NodeStatus, t corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return &s.Conditions[i]
		}
	}
	return nil
}

func keepTransitions(want, have *corev1.NodeStatus) {
	for i := range want.Conditions {
		c := &want.Conditions[i]
		if old := nodeCondition(have, c.Type); old != nil && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
	}
}

// wanted is the Node as it should be.
func (r *registrar) wanted(now time.Time) *corev1.Node {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse(capacityCPU),
		corev1.ResourceMemory:           resource.MustParse(capacityMemory),
		corev1.ResourceEphemeralStorage: resource.MustParse(capacityDisk),
		corev1.ResourcePods:             *resource.NewQuantity(int64(r.maxPods), resource.DecimalSI),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: r.name, Labels: map[string]string{
			corev1.LabelHostname:   r.name,
			corev1.LabelOSStable:   runtime.GOOS,
			corev1.LabelArchStable: runtime.GOARCH,
		}},
		Status: corev1.NodeStatus{
			Capacity:    capacity,
			Allocatable: capacity,
			Conditions:  nodeConditions(now),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: nodeIP},
				{Type: corev1.NodeHostName, Address: r.name},
			},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: r.port}},
			NodeInfo:        nodeInfo(),
		},
	}
}

func nodeConditions(now time.Time) []corev1.NodeCondition {
	list := []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "HostProcessNode", Message: "memory is not watched"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "HostProcessNode", Message: "disk space is not watched"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "HostProcessNode", Message: "process ids are not watched"},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "host-process node is running"},
	}
	for i := range list {
		list[i].LastHeartbeatTime, list[i].LastTransitionTime = *seconds(now), *seconds(now)
	}
	return list
}

// nodeInfo tells kubectl what this is; the fields that name parts of a container host say that there is none. The version
// is that of Kubernetes which the program was linked with.
func nodeInfo() corev1.NodeSystemInfo {
	return corev1.NodeSystemInfo{
		OperatingSystem:         runtime.GOOS,
		Architecture:            runtime.GOARCH,
		OSImage:                 "host processes without isolation",
		ContainerRuntimeVersion: "hostprocess://1",
		KubeletVersion:          version.Get().GitVersion + "-hostprocess",
	}
}
