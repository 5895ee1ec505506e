package policy

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/wire"
)

// status is that of a JobPolicy.
type status struct {
	ObservedGeneration int64 `json:"observedGeneration"`
	// Jobs are the managed Jobs that use the policy and have not finished, CronJobs the managed CronJobs that
	// use it.
	Jobs       int32              `json:"jobs"`
	CronJobs   int32              `json:"cronJobs"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Of the condition that is written here.
const (
	conditionValid = "Valid"
	reasonValid    = "Valid"
	reasonInvalid  = "Invalid"
)

const (
	// statusPeriod is how often the status of each policy is compared with what is known.
	statusPeriod = 10 * time.Second
	// statusPause is the shortest time between two writes.
	statusPause = 100 * time.Millisecond
	// statusTimeout bounds a write.
	statusTimeout = 10 * time.Second
	// maxMessageBytes is the limit of a condition's message.
	maxMessageBytes = 32768
)

// WriteStatuses keeps the status of the policies true until ctx ends. Only one process may do so.
func (p *Policies) WriteStatuses(ctx context.Context) {
	tick := time.NewTicker(statusPeriod)
	defer tick.Stop()
	for {
		p.writeStatuses(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (p *Policies) writeStatuses(ctx context.Context) {
	for policy := range p.all() {
		want := p.statusOf(policy)
		if ctx.Err() != nil {
			return
		}
		if equal(want, policy.status) {
			continue
		}
		if err := p.writeStatus(ctx, policy, want); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			p.cfg.Logger.WarnContext(ctx, "status of a JobPolicy not written", slog.String("namespace", policy.Namespace),
				slog.String("policy", policy.Name), slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(statusPause):
		}
	}
}

// statusOf is the status that a policy should have.
func (p *Policies) statusOf(policy *object) status {
	s := status{ObservedGeneration: policy.Generation, Conditions: policy.conditions()}
	seen := map[any]bool{} // Several controllers may follow the same objects.
	for _, f := range p.followed {
		if seen[f.objects] {
			continue
		}
		seen[f.objects] = true
		for _, user := range p.users(f.objects, policy.Namespace, policy.Name) {
			switch user := user.(type) {
			case *batchv1.Job:
				s.Jobs += count(p.cfg.Scope.Reconciles(user))
			case *batchv1.CronJob:
				s.CronJobs += count(p.cfg.Scope.Runs(user))
			}
		}
	}
	return s
}

func count(yes bool) int32 {
	if yes {
		return 1
	}
	return 0
}

// conditions are those that a policy should have: Valid as it is now, whose time stays while its status does, and
// those of others as they are.
func (o *object) conditions() []metav1.Condition {
	valid := metav1.Condition{Type: conditionValid, Status: metav1.ConditionTrue, Reason: reasonValid, ObservedGeneration: o.Generation}
	if len(o.problems) > 0 {
		valid.Status, valid.Reason, valid.Message = metav1.ConditionFalse, reasonInvalid, wire.Text(strings.Join(o.problems, "; "), maxMessageBytes)
	}
	all := slices.Clone(o.status.Conditions)
	meta.SetStatusCondition(&all, valid)
	return all
}

func equal(a, b status) bool {
	return a.ObservedGeneration == b.ObservedGeneration && a.Jobs == b.Jobs && a.CronJobs == b.CronJobs &&
		slices.EqualFunc(a.Conditions, b.Conditions, func(x, y metav1.Condition) bool {
			x.LastTransitionTime, y.LastTransitionTime = metav1.Time{}, metav1.Time{}
			return x == y
		})
}

// writeStatus writes the status unless the policy has changed meanwhile.
func (p *Policies) writeStatus(ctx context.Context, policy *object, s status) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": policy.ResourceVersion}, "status": s})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	_, err = p.cfg.Client.Resource(Resource).Namespace(policy.Namespace).Patch(ctx, policy.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
