package podjob

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A step applies one decision about a group. calls tells pods what its answers show.
type step struct {
	*Group
	pods  *tracker.Job
	calls *api.Pods
}

// apply carries out a decision in the contract's order, and reports whether it changed anything. It
// stops after the first step that does not succeed in full.
func (c *Controller) apply(ctx context.Context, s *step, decision *jobpolicyv1.DecideJobResponse) (changed bool, err error) {
	if err := c.create(ctx, s, decision.GetCreate()); err != nil {
		return false, err
	}
	if err := c.remove(ctx, s, decision); err != nil {
		return false, err
	}
	status, written, err := wire.NextStatus(decision.GetStatus(), &s.Job.Status)
	if err == nil && written {
		err = s.WriteStatus(ctx, status)
	}
	if err != nil {
		return false, err
	}
	// No later decision has these events: the status is written.
	for _, event := range decision.GetEvents() {
		if c.Event != nil {
			c.Event(s.Job, event)
		}
	}
	changed = written || decision.GetCreate() != nil || len(decision.GetDelete())+len(decision.GetEnd())+len(decision.GetRelease())+len(decision.GetDeleteFinished()) > 0
	if err := s.release(ctx, decision.GetRelease()); err != nil {
		return changed, err
	}
	return changed, c.prune(ctx, s, decision.GetDeleteFinished())
}

// remove deletes and ends pods. If one cannot be, the others still are.
func (c *Controller) remove(ctx context.Context, s *step, decision *jobpolicyv1.DecideJobResponse) (failed error) {
	for _, d := range decision.GetDelete() {
		pod, err := s.pod(d.GetUid())
		if err == nil {
			err = s.calls.Delete(ctx, s.Job, pod.UID, d)
		}
		failed = errors.Join(failed, err)
	}
	for _, e := range decision.GetEnd() {
		pod, err := s.pod(e.GetUid())
		if err == nil {
			err = s.calls.End(ctx, pod.UID, e)
		}
		failed = errors.Join(failed, err)
	}
	// The next Step counts a pod that has ended or started meanwhile as such.
	if failed != nil && !errors.Is(failed, api.ErrPodEnded) && !errors.Is(failed, api.ErrPodStarted) {
		c.deferStep(s.pods.UID, deletePods, backoff)
	}
	return failed
}

// prune deletes finished pods. If one cannot be deleted, the others still are.
func (c *Controller) prune(ctx context.Context, s *step, uids [][]byte) (failed error) {
	for _, uid := range uids {
		pod, err := s.pod(uid)
		if err == nil {
			err = s.calls.DeleteFinished(ctx, s.Job, pod.UID)
		}
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		c.deferStep(s.pods.UID, deleteFinished, backoff)
	}
	return failed
}

// create creates pods. Each name ends in the number after the highest of the group's pods. So if the
// answer to a creation is lost and the pod appears after all, the next creation finds its name taken,
// also when an earlier pod is gone. Until that next creation, no finished pod is deleted, which may be the highest.
// A pod that admission has changed, so that it does not count for the group, is deleted, and the creation counts as failed.
func (c *Controller) create(ctx context.Context, s *step, create *jobpolicyv1.CreatePods) error {
	next := s.nextNumbers()
	for _, p := range wire.NewPods(s.Job, s.Options, create) {
		pod := p.From(s.Job)
		pod.OwnerReferences = []metav1.OwnerReference{s.Owner}
		pod.Annotations[GroupAnnotation] = s.Job.Name
		if err := s.createOne(ctx, c, pod, p.Index, next); err != nil {
			c.deferStep(s.pods.UID, createPods, api.QuotaDelay(backoff, s.Options, err))
			if s.Options.GetKeepFinishedPods() != nil && api.OutcomeUnknown(err) {
				c.deferStep(s.pods.UID, deleteFinished, backoff)
			}
			return fmt.Errorf("creating pod %s: %w", pod.Name, errors.Join(err, s.deleteAltered(ctx)))
		}
	}
	return nil
}

// nextNumbers are the numbers after the highest of the pods, by what precedes the number in the name.
func (g *Group) nextNumbers() map[string]int64 {
	next := map[string]int64{}
	for i := range g.Pods {
		name := g.Pods[i].Name
		prefix := name[:strings.LastIndexByte(name, '-')+1]
		if n, err := strconv.ParseInt(name[len(prefix):], 10, 32); err == nil {
			next[prefix] = max(next[prefix], n+1)
		}
	}
	return next
}

// createOne creates a pod under the next name, and counts on. It passes over the names of pods that
// are not of this group.
func (s *step) createOne(ctx context.Context, c *Controller, pod *corev1.Pod, index int32, next map[string]int64) error {
	for {
		pod.Name = pod.GenerateName + strconv.FormatInt(next[pod.GenerateName], 10)
		next[pod.GenerateName]++
		err := s.calls.Create(ctx, s.Job, pod, index)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		live, readErr := c.Pods.Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if readErr != nil || s.made(live) {
			return err // An earlier creation made it; the next Step counts it.
		}
	}
}

// made reports whether the pod was created for this group. A reference to the owner that does not make
// it the controller shows nothing: anybody can create such a pod, and ByOwner leaves it out.
func (g *Group) made(pod *corev1.Pod) bool {
	ref := wire.ControllerOf(pod, wire.KindOf(&g.Owner))
	return ref != nil && ref.UID == g.Owner.UID && pod.Annotations[GroupAnnotation] == g.Job.Name
}

func (s *step) deleteAltered(ctx context.Context) (failed error) {
	for _, pod := range s.pods.AlteredPods() {
		failed = errors.Join(failed, s.calls.DeleteAltered(ctx, s.Job, pod))
	}
	return failed
}

// release releases pods. If a webhook puts a finalizer back, the other pods are released all the same.
func (s *step) release(ctx context.Context, uids [][]byte) (failed error) {
	for _, uid := range uids {
		pod, err := s.pod(uid)
		if err == nil {
			err = s.calls.Release(ctx, pod)
		}
		if failed = errors.Join(failed, err); err != nil && !errors.Is(err, api.ErrPutBack) {
			return failed
		}
	}
	return failed
}

// pod returns the pod of a UID, which CheckDecision has checked.
func (s *step) pod(uid []byte) (*podcache.Pod, error) {
	want, _ := wire.UIDString(uid)
	pod, known := s.pods.Pod(want)
	if !known {
		return nil, fmt.Errorf("the decision names pod %s, and the request did not", want)
	}
	return pod, nil
}

// Remove releases and deletes pods that count nowhere any more, for example because
// their owner is gone. A pod that has got another controller since it was read is left alone. After an
// error the other pods are removed all the same.
func (c *Controller) Remove(ctx context.Context, pods []corev1.Pod) (failed error) {
	for i := range pods {
		calls := c.calls(&metav1.OwnerReference{}, tracker.New(tracker.Key{}, nil))
		failed = errors.Join(failed, calls.DeleteAltered(ctx, &batchv1.Job{}, podcache.From(&pods[i])))
	}
	return failed
}
