package podjob

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/clock"
	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/podfacts"
)

const (
	// GroupAnnotation names the group that a pod was created for.
	GroupAnnotation = api.GroupAnnotation
	// backoff is how long a step of a group is not tried again after it failed. After a quota refused a
	// pod, options may shorten it.
	backoff = 10 * time.Second
	// maxRows is a little less than the contract's limit, as the tracker may list more.
	maxRows = 99_000
	// retryAfter is how long Run waits after an error.
	retryAfter = time.Second

	createPods     = jobpolicyv1.Step_STEP_CREATE_PODS
	deletePods     = jobpolicyv1.Step_STEP_DELETE_PODS
	deleteFinished = jobpolicyv1.Step_STEP_DELETE_FINISHED_PODS
)

// A Controller carries out what an engine decides about groups. It is safe for
// concurrent use, for different groups.
type Controller struct {
	Ask answer.Ask
	// Pods reads and writes pods. If the API server says that a namespace is being deleted, it
	// reads the Namespace.
	Pods typedcorev1.CoreV1Interface
	// Settings of all requests; nil: every default. PodGroups must not be set, because no Workload
	// and no PodGroup is created.
	Settings *jobpolicyv1.Settings
	// Node says the state of the node of that name, for groups whose Options have TerminationDeadlineNode. nil: it is
	// not known, so no pod of such a group is given up. The caller calls Step when the state has changed.
	Node func(name string) jobpolicyv1.NodeState
	// Event is called with each event on a group, after the status is written. nil: events are
	// dropped.
	Event func(group *batchv1.Job, event *jobpolicyv1.JobEvent)
	// Now returns wall time. Default time.Now.
	Now func() time.Time

	after sync.Map // By groupStep: until when the step is not tried again after a failure.
}

// A groupStep is a step of the group that has a UID.
type groupStep struct {
	group types.UID
	step  jobpolicyv1.Step
}

// A Group is a group of pods that run as a Job.
type Group struct {
	// Owner is the reference of each pod to its controller. Its field Controller must be true.
	Owner metav1.OwnerReference
	// Job has the group's namespace, name and spec, and its status as last written. A pod has the
	// fields of the spec's template that the types of this program have: what the caller's
	// decoder has dropped of its own object is lost. The owner has no other group of that name, and
	// never has one again: each pod gets the name as its GroupAnnotation. The time to live and
	// annotations are ignored: the owner decides how long the group stays, and Options are its options.
	Job *batchv1.Job
	// Options are the group's options that the Kubernetes API does not have; nil: none. They are not
	// changed, and times to live in them are ignored. The engine refuses options that are beyond a limit
	// or do not fit Job (wire.CheckOptions): then each Step fails. wire.PolicySpec reads options from an
	// annotation. They need an engine with CAPABILITY_OPTIONS.
	Options *jobpolicyv1.JobOptions
	// Pods are all pods of the group, finished ones included. They are in the namespace of Job.
	Pods []corev1.Pod
	// WriteStatus writes the group's next status durably. It fails if somebody else has
	// changed the object since Job was read.
	WriteStatus func(context.Context, batchv1.JobStatus) error
}

// Step brings a group one step forward. next is when to call it again if neither a pod nor
// the object changes, by time.Now, whatever the clock of Controller shows; zero: only after a
// change. After an error call it again after a delay.
func (c *Controller) Step(ctx context.Context, g Group) (next time.Time, err error) {
	if err := c.validate(&g); err != nil {
		return next, err
	}
	pods := g.known()
	var req *jobpolicyv1.DecideJobRequest
	decision, err := answer.Decide(ctx, c.Ask, func(activePods bool) (*jobpolicyv1.DecideJobRequest, error) {
		req, err = c.request(&g, pods, activePods)
		return req, err
	})
	if err != nil {
		return next, err
	}
	if err := wire.CheckDecision(req, decision); err != nil {
		return next, fmt.Errorf("the answer of the policy engine breaks the contract: %w", err)
	}
	changed, err := c.apply(ctx, &step{Group: &g, pods: pods, calls: c.calls(&g.Owner, pods)}, decision)
	if err != nil {
		return next, err
	}
	decision.FollowUp = answer.FollowUp(decision, changed)
	now := c.now()
	return clock.MomentOf(answer.Next(decision, now), now), nil
}

// validate refuses what a Controller cannot carry out.
func (c *Controller) validate(g *Group) error {
	switch {
	case c.Settings.GetPodGroups() != jobpolicyv1.PodGroups_POD_GROUPS_UNSPECIFIED:
		return errors.New("Settings.PodGroups is set, want it unset: no Workload and no PodGroup is created")
	case !ptr.Deref(g.Owner.Controller, false):
		return errors.New("Owner.Controller is not true, want a reference to the controller of the pods")
	}
	return nil
}

func (c *Controller) now() time.Time { return clock.New(c.Now)() }

// calls returns what makes the calls about the pods of an owner. They have no spans.
func (c *Controller) calls(owner *metav1.OwnerReference, pods *tracker.Job) *api.Pods {
	client := &api.Client{Core: c.Pods, Tracer: telemetry.NewTracer(noop.NewTracerProvider(), "")}
	return client.GroupPods(owner, pods)
}

func (c *Controller) request(g *Group, pods *tracker.Job, activePods bool) (*jobpolicyv1.DecideJobRequest, error) {
	job := *g.Job
	job.UID, job.Spec.TTLSecondsAfterFinished, job.Annotations = pods.UID, nil, nil
	now := c.now()
	question := tracker.ViewOptions{Uncounted: job.Status.UncountedTerminatedPods, Now: now, MaxRows: maxRows, Options: g.Options, Node: c.Node}
	if activePods {
		question.ActiveRows = maxRows
	}
	view := pods.View(question)
	req, err := view.Request(&job, c.Settings, now)
	if err != nil {
		return nil, err
	}
	req.Spec.Options = withoutTTL(g.Options)
	if view.HasRun {
		podfacts.TellHasRun(req)
	}
	req.Deferrals = c.deferrals(pods.UID, now)
	return req, nil
}

// deferrals are the steps of a group that are not to be tried now.
func (c *Controller) deferrals(group types.UID, now time.Time) (all []*jobpolicyv1.Deferral) {
	for _, step := range []jobpolicyv1.Step{createPods, deletePods, deleteFinished} {
		if at, found := c.after.Load(groupStep{group, step}); found {
			all = append(all, &jobpolicyv1.Deferral{Step: step, Until: timestamppb.New(clock.WallOf(at.(time.Time), now))})
		}
	}
	return all
}

// withoutTTL is a copy of options that have no time to live.
func withoutTTL(o *jobpolicyv1.JobOptions) *jobpolicyv1.JobOptions {
	o = proto.CloneOf(o)
	if o != nil {
		o.TtlSecondsAfterComplete, o.TtlSecondsAfterFailed, o.DefaultTtlSecondsAfterFinished = nil, nil, nil
	}
	return o
}

// known returns what is known of the pods. Its UID identifies the group: groups of one owner differ
// by their names.
func (g *Group) known() *tracker.Job {
	uid := uuid.NewSHA1(uuid.NameSpaceOID, []byte(string(g.Owner.UID)+"/"+g.Job.Name)).String()
	known := tracker.New(tracker.Key{Namespace: g.Job.Namespace, UID: types.UID(uid)}, nil)
	known.SetPolicy(tracker.PodPolicy(g.Job))
	for i := range g.Pods {
		known.ObservePod(podcache.From(&g.Pods[i]), tracker.Watch)
	}
	return known
}

// deferStep leaves a step of a group for a while. The other steps go on meanwhile.
func (c *Controller) deferStep(group types.UID, step jobpolicyv1.Step, delay time.Duration) {
	key, until := groupStep{group, step}, time.Now().Add(delay)
	c.after.Store(key, until)
	time.AfterFunc(delay, func() { c.after.CompareAndDelete(key, until) }) // The group may be gone.
}
