package podjob

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"jobpolicy.dev/executor/api"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/state"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wallclock"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

const (
	// createBackoff is how long no pod of a group is created after a creation failed.
	createBackoff = 10 * time.Second
	// maxRows is a little less than the contract's limit, as the tracker may list more.
	maxRows = 99_000
)

// A Controller carries out what an engine decides about groups. It is safe for
// concurrent use, for different groups.
type Controller struct {
	Ask  answer.Ask
	Pods corev1client.PodsGetter
	// Settings of all requests; nil: every default. PodGroups must not be set, because no
	// Workload and no PodGroup is created.
	Settings *jobpolicyv1.Settings
	// Event is called with each event on a group, after the status is written. nil: events are
	// dropped.
	Event func(group *batchv1.Job, event *jobpolicyv1.JobEvent)
	// Now returns wall time. Default time.Now.
	Now func() time.Time

	createAfter sync.Map // By the UID of a group: until when no pod is created after a failure.
}

// A Group is a group of pods that run as a Job.
type Group struct {
	// Owner is the reference of each pod to its controller.
	Owner metav1.OwnerReference
	// Job has the group's namespace, name and spec, and its status as last written. A pod has the
	// fields of the spec's template that the types of this program have: what the caller's
	// decoder has dropped of its own object is lost. The owner
	// has no other group of that name, and never has one again: each pod gets the annotation
	// jobpolicy.dev/group with the name. The spec's time to live is ignored: the owner decides
	// how long the group stays.
	Job *batchv1.Job
	// Pods are all pods of the group, finished ones included. They are in the namespace of Job.
	Pods []corev1.Pod
	// WriteStatus writes the group's next status durably. It fails if somebody else has
	// changed the object since Job was read.
	WriteStatus func(context.Context, batchv1.JobStatus) error
}

// Step brings a group one step forward. next is when to call it again if neither a pod nor
// the object changes; zero: only after a change. After an error call it again after a delay.
func (c *Controller) Step(ctx context.Context, g Group) (next time.Time, err error) {
	if err := c.validate(); err != nil {
		return next, err
	}
	decision, err := answer.Decide(ctx, c.Ask, func(activePods bool) (*jobpolicyv1.DecideJobRequest, error) {
		return c.request(g, activePods)
	})
	if err != nil {
		return next, err
	}
	if err := c.create(ctx, g, decision.GetCreate()); err != nil {
		return next, err
	}
	for _, d := range decision.GetDelete() {
		err := c.each(g, d.GetUid(), func(pod *corev1.Pod) error {
			if d.GetReleaseFirst() {
				return c.releaseAndDelete(ctx, g, pod)
			}
			return c.delete(ctx, pod)
		})
		if err != nil {
			return next, err
		}
	}
	written, err := g.write(ctx, decision.GetStatus())
	if err != nil {
		return next, err
	}
	// No later decision has these events: the status is written.
	for _, event := range decision.GetEvents() {
		if c.Event != nil {
			c.Event(g.Job, event)
		}
	}
	var putBack error // The other pods are released all the same.
	for _, uid := range decision.GetRelease() {
		err := c.each(g, uid, func(pod *corev1.Pod) error { return c.release(ctx, pod) })
		switch {
		case errors.Is(err, api.ErrPutBack):
			putBack = cmp.Or(putBack, err)
		case err != nil:
			return next, err
		}
	}
	if putBack != nil {
		return next, putBack
	}
	changed := written || decision.GetCreate() != nil || len(decision.GetDelete())+len(decision.GetRelease()) > 0
	decision.FollowUp = answer.FollowUp(decision, changed)
	return answer.Next(decision, c.now()), nil
}

// validate refuses settings that a Controller cannot carry out.
func (c *Controller) validate() error {
	if c.Settings.GetPodGroups() != jobpolicyv1.PodGroups_POD_GROUPS_UNSPECIFIED {
		return errors.New("Settings.PodGroups is set, want it unset: no Workload and no PodGroup is created")
	}
	return nil
}

func (c *Controller) now() time.Time { return wallclock.New(c.Now)() }

// write writes a status that differs from the group's, and reports whether it did.
func (g *Group) write(ctx context.Context, decided *jobpolicyv1.JobStatus) (written bool, err error) {
	if decided == nil {
		return false, nil
	}
	status, err := wire.APIStatus(decided)
	if err != nil {
		return false, err
	}
	wire.KeepUndecided(&status, &g.Job.Status)
	if wire.SameStatus(&status, &g.Job.Status) {
		return false, nil
	}
	return true, g.WriteStatus(ctx, status)
}

// uid identifies the group. Groups of one owner differ by their names.
func (g *Group) uid() [16]byte {
	sum := sha256.Sum256([]byte(string(g.Owner.UID) + "/" + g.Job.Name))
	return [16]byte(sum[:16])
}

func (c *Controller) request(g Group, activePods bool) (*jobpolicyv1.DecideJobRequest, error) {
	spec, err := wire.JobSpec(g.Job)
	if err != nil {
		return nil, err
	}
	spec.TtlSecondsAfterFinished = nil
	status, err := wire.JobStatus(&g.Job.Status)
	if err != nil {
		return nil, err
	}
	now := c.now()
	question := tracker.ViewOptions{Uncounted: g.Job.Status.UncountedTerminatedPods, Now: now, MaxRows: maxRows}
	if activePods {
		question.ActiveRows = maxRows
	}
	view := g.tracker().View(question)
	uid := g.uid()
	req := &jobpolicyv1.DecideJobRequest{
		Now: timestamppb.New(now), Settings: c.Settings, Spec: spec, Status: status,
		Job:  &jobpolicyv1.JobRef{Uid: uid[:], Namespace: g.Job.Namespace, Name: g.Job.Name, Generation: g.Job.Generation},
		Pods: view.Pods, ActivePods: view.Active, UnaccountedPods: view.Unaccounted, UnlistedPods: view.Unlisted,
		ConfirmedReleases: view.Confirmed, Retry: view.Retry,
	}
	if at, found := c.createAfter.Load(uid); found {
		req.Deferrals = []*jobpolicyv1.Deferral{{Step: jobpolicyv1.Step_STEP_CREATE_PODS, Until: timestamppb.New(wallclock.Of(at.(time.Time), now))}}
	}
	return req, nil
}

// tracker returns a Tracker of the pods.
func (g *Group) tracker() *tracker.Tracker {
	t := tracker.New()
	t.SetPolicy(state.PodPolicy(g.Job))
	for i := range g.Pods {
		t.Observe(podcache.From(&g.Pods[i]), tracker.Watch)
	}
	return t
}

// each calls f with the pod of a UID.
func (c *Controller) each(g Group, uid []byte, f func(*corev1.Pod) error) error {
	want, err := wire.UIDString(uid)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(g.Pods, func(pod corev1.Pod) bool { return pod.UID == want })
	if i < 0 {
		return fmt.Errorf("the decision names pod %s, and the request did not", want)
	}
	return f(&g.Pods[i])
}
