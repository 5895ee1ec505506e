// Package gang finds or creates the Workload and the PodGroup of a Job whose pods belong to a
// group.
//
// References between these objects contain names; ownership is checked by UID. The
// package keeps no state: the name of an object follows from the Job's UID, so an object
// that is not in the cache yet is found by name.
//
// Read gang.go (Ensure), then own.go (a Job that has both objects), delegated.go (a Job whose
// controller has the Workload), and objects.go.
package gang

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// The reasons of events on a Job, as in the built-in controller.
const (
	eventWorkloadCreated   = "WorkloadCreated"
	eventPodGroupCreated   = "PodGroupCreated"
	eventFailedCompilation = "FailedWorkloadCompilation"
)

var (
	// ErrWait: no pods may be created before the Workload of the Job, or of its controller, has
	// changed. An event has told of it.
	ErrWait = errors.New("pods wait for a Workload")
	// errNoGroup: the objects in the cluster cannot be the Job's group. Its pods are scheduled
	// without one.
	errNoGroup = errors.New("no group")
	// errNoWorkload: no Workload was created before the Job began, or it was deleted.
	errNoWorkload = fmt.Errorf("there is no Workload, and the Job has begun: %w", errNoGroup)
)

// Config is what Gangs are made of. All fields but Server and Namespaces are required.
type Config struct {
	API *api.Client
	// Server tells whether the API server serves gangs. nil: it does.
	Server *api.Server
	// Namespaces: see controller.Config.
	Namespaces []string
	Recorder   record.EventRecorder
	Logger     *slog.Logger
}

// Gangs are the Workloads and PodGroups of the cluster. The Workload says how a Job's pods are
// to be scheduled, and the pods name the PodGroup. A nil *Gangs has no informers. Its Ensure must
// not be asked for a group.
type Gangs struct {
	cfg                  Config
	workloads, podGroups *controller.Informers
}

// A request is one call of Ensure.
type request struct {
	*Gangs
	of   api.Subject
	job  *batchv1.Job
	want *jobpolicyv1.Gang
	// creates: the decision creates pods, so that it has to be known for certain what there is.
	creates bool
}

// Ensure finds or creates the PodGroup for a Job's pods and returns its name. The name is
// empty if the decision asks for no group, or if the pods are scheduled without one. It also
// changes the minimum of a gang to that of the decision. creates says whether the decision creates
// pods; if it does not, Ensure reads only the caches, and never returns ErrWait.
func (g *Gangs) Ensure(ctx context.Context, refusals *writes.Refusals, job *batchv1.Job, want *jobpolicyv1.Gang, creates bool) (podGroup string, err error) {
	if want == nil {
		return "", nil
	}
	ctx, end := g.cfg.API.Tracer.Span(ctx, telemetry.SpanGangEnsured)
	defer func() { end(err) }()
	r := &request{g, api.Subject{Object: job, Refusals: refusals}, job, want, creates}
	if err = g.usable(ctx); err != nil {
		return "", r.unusable(err)
	}
	find := r.own
	if want.TemplateName != nil {
		find = r.delegated
	}
	podGroup, err = find(ctx)
	return podGroup, r.ended(ctx, err)
}

// unusable records that nothing is known of Workloads and PodGroups. That holds up a Job only if it is to have some now.
func (r *request) unusable(err error) error {
	if !r.creates && !r.want.GetMayCreate() {
		return nil
	}
	r.cfg.Recorder.Eventf(r.job, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
	return err
}

// ended records how a call ended.
func (r *request) ended(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, errNoGroup) {
		r.of.Refusals.Over(writes.CreateWorkload, writes.CreatePodGroup, writes.UseWorkload)
	}
	switch {
	case errors.Is(err, errNoGroup):
		if r.creates {
			r.cfg.Logger.InfoContext(ctx, "pods are scheduled without a group", append(telemetry.JobAttrs(r.job), slog.Any("reason", err))...)
		}
		return nil
	case errors.Is(err, ErrWait):
		if !r.creates {
			return nil
		}
		r.cfg.API.PodsWait(r.of, whyWait(err))
	case api.NamespaceTerminating(err):
		return api.ErrNamespaceTerminating
	}
	return err
}

// wait says why no pods are created.
func wait(format string, args ...any) error { return &waitError{fmt.Sprintf(format, args...)} }

type waitError struct{ why string }

func (e *waitError) Error() string   { return ErrWait.Error() + ": " + e.why }
func (e *waitError) Is(t error) bool { return t == ErrWait }

func whyWait(err error) string {
	var w *waitError
	if errors.As(err, &w) {
		return w.why
	}
	return err.Error()
}

// podGroup finds the PodGroup of a Workload that the Job controls, or creates the given one, and
// changes its minimum.
func (r *request) podGroup(ctx context.Context, made *schedulingv1beta1.PodGroup, mayCreate bool, size gangSize) (string, error) {
	found, err := r.controlled(made.Spec.WorkloadRef.WorkloadName)
	switch {
	case err != nil:
		return "", err
	case len(found) > 1:
		return "", fmt.Errorf("the Job controls %d PodGroups of Workload %s: %w", len(found), made.Spec.WorkloadRef.WorkloadName, errNoGroup)
	case len(found) == 1:
		return found[0].Name, r.resize(ctx, found[0], size)
	case !mayCreate && !r.creates:
		return "", nil
	}
	group, err := r.newPodGroup(ctx, made, mayCreate)
	if err != nil {
		return "", err
	}
	return group.Name, r.resize(ctx, group, size)
}

// newPodGroup creates a PodGroup, or reads the one that has its name: the cache may not show it yet.
func (r *request) newPodGroup(ctx context.Context, made *schedulingv1beta1.PodGroup, mayCreate bool) (*schedulingv1beta1.PodGroup, error) {
	if mayCreate {
		group, err := r.cfg.API.CreatePodGroup(ctx, r.of, made)
		if err == nil {
			r.cfg.Recorder.Eventf(r.job, corev1.EventTypeNormal, eventPodGroupCreated, "Created PodGroup %s for Job %s", group.Name, r.job.Name)
			return group, r.checkPodGroup(group)
		}
		if !apierrors.IsAlreadyExists(err) {
			r.cfg.Recorder.Eventf(r.job, corev1.EventTypeWarning, "FailedCreate", "Error creating: pod group: %v", err)
			return nil, fmt.Errorf("pod group: %w", err)
		}
	}
	group, err := r.cfg.API.PodGroup(ctx, made.Namespace, made.Name)
	switch {
	case errors.Is(err, api.ErrGone) && mayCreate:
		return nil, errors.New("a PodGroup was deleted before it was read")
	case errors.Is(err, api.ErrGone):
		return nil, fmt.Errorf("there is no PodGroup, and the Job has begun: %w", errNoGroup)
	case err != nil:
		return nil, fmt.Errorf("pod group: %w", err)
	}
	return group, r.checkPodGroup(group)
}

func (r *request) checkPodGroup(group *schedulingv1beta1.PodGroup) error {
	switch {
	case metav1.IsControlledBy(group, r.job):
		return nil
	case r.want.TemplateName != nil:
		return wait("PodGroup %s, which the Job's pods would join, belongs to somebody else", group.Name)
	}
	return fmt.Errorf("the Job does not control PodGroup %s: %w", group.Name, errNoGroup)
}

// controlled lists the PodGroups of a Workload that the Job controls; an empty name means any
// Workload. Objects of somebody else, or of an earlier Job of the same name, do not count
// (invariant I8).
func (r *request) controlled(workload string) (groups []*schedulingv1beta1.PodGroup, err error) {
	objects, err := r.podGroups.In(r.job.Namespace).GetIndexer().ByIndex(jobIndex, string(r.job.UID))
	for _, obj := range objects {
		if group := obj.(*schedulingv1beta1.PodGroup); workload == "" || group.Spec.WorkloadRef.WorkloadName == workload {
			groups = append(groups, group)
		}
	}
	return groups, err
}

// A gangSize is which minimum a gang is to have: min, unless it has one from min to max.
type gangSize struct{ min, max int32 }

func (s gangSize) allows(gang *schedulingv1beta1.GangSchedulingPolicy) bool {
	return gang == nil || s.min == 0 || (gang.MinCount >= s.min && gang.MinCount <= s.max)
}

func (r *request) size() gangSize { return gangSize{r.want.GetMinCount(), r.want.GetMaxCount()} }

// resize changes the minimum of a PodGroup's gang.
func (r *request) resize(ctx context.Context, group *schedulingv1beta1.PodGroup, size gangSize) error {
	if size.allows(group.Spec.SchedulingPolicy.Gang) {
		r.of.Refusals.Over(writes.ChangeGang)
		return nil
	}
	_, err := r.cfg.API.SetPodGroupMinCount(ctx, r.of, group, size.min)
	if err != nil {
		return fmt.Errorf("pod group: %w", err)
	}
	return nil
}
