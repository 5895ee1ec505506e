package cronjob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// apiTimeout bounds one call of the API server, waiting for the client's rate
// limit included.
const apiTimeout = 60 * time.Second

// EventNotSuspended is the reason of the event on a CronJob that names this
// controller but is not suspended for the built-in one.
const EventNotSuspended = "NotSuspended"

var (
	// errGone ends a round whose CronJob does not exist any more.
	errGone = errors.New("cron job is gone")
	// errBadAnswer: the answer is not one that the contract allows.
	errBadAnswer = errors.New("answer of the policy engine breaks the contract")
	// errNamespaceTerminating: nothing can be created there again.
	errNamespaceTerminating = errors.New("namespace is being terminated")
)

// next says when a CronJob wants its next round if no event comes before.
type next struct {
	again bool
	after time.Duration
}

// round runs one pass over a CronJob: ask, then carry out.
func (c *Controller) round(ctx context.Context, s *cronState) (next, error) {
	cron := s.current()
	if cron == nil {
		return next{}, nil
	}
	if !c.ours(cron) {
		c.tellNotSuspended(s, cron)
		return next{}, nil
	}
	ctx, end := c.span(ctx, SpanCronJobRound, attrs(cron)...)
	n, err := c.pass(ctx, s)
	if errors.Is(err, errGone) {
		err = nil
	}
	end(err)
	return n, err
}

func (c *Controller) pass(ctx context.Context, s *cronState) (next, error) {
	snap, d, err := c.decide(ctx, s)
	if err != nil {
		return next{}, err
	}
	s.mu.Lock()
	s.last = d.GetExplanation()
	s.mu.Unlock()
	c.describe(ctx, snap, d)
	again, err := c.apply(ctx, s, snap, d)
	if err != nil {
		return next{}, err
	}
	if again {
		return next{again: true}, nil
	}
	if at := d.GetRequeueTime(); at != nil {
		return next{after: c.until(at.AsTime())}, nil
	}
	return next{}, nil
}

// tellNotSuspended says why a CronJob that names this controller is left alone.
func (c *Controller) tellNotSuspended(s *cronState, cron *batchv1.CronJob) {
	if !c.handedOver(cron) {
		return
	}
	c.tellOnce(s, cron, EventNotSuspended, fmt.Sprintf(
		"%s names this controller, but spec.suspend is not true: the built-in controller runs this CronJob until it is", AnnotationManagedBy))
}

// tellOnce records a warning once for each generation and text.
func (c *Controller) tellOnce(s *cronState, cron *batchv1.CronJob, reason, message string) {
	told := fmt.Sprintf("%d %s", cron.Generation, message)
	s.mu.Lock()
	repeated := s.told == told
	s.told = told
	s.mu.Unlock()
	if !repeated {
		c.recorder.Event(cron, corev1.EventTypeWarning, reason, message)
	}
}

// decide asks, and asks once more with what the engine wants to be sure of.
func (c *Controller) decide(ctx context.Context, s *cronState) (snapshot, *jobpolicyv1.DecideCronJobResponse, error) {
	snap, err := c.snapshot(s)
	if err != nil {
		return snapshot{}, nil, err
	}
	d, err := c.ask(ctx, s, snap)
	if err != nil || d.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE {
		return snap, d, err
	}
	absent, err := c.absentJobs(ctx, s, snap)
	if err != nil {
		return snapshot{}, nil, err
	}
	if snap, err = c.snapshot(s); err != nil {
		return snapshot{}, nil, err
	}
	snap.req.AbsentJobs = absent
	if d, err = c.ask(ctx, s, snap); err != nil {
		return snapshot{}, nil, err
	}
	if d.GetDisposition() == jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE {
		return snapshot{}, nil, fmt.Errorf("requirements %v were met and are asked for again: %w", d.GetRequirements(), errBadAnswer)
	}
	return snap, d, nil
}

// absentJobs reads the Jobs of the active list that the watch does not show.
// Those that exist count as seen from now on.
func (c *Controller) absentJobs(ctx context.Context, s *cronState, snap snapshot) ([][]byte, error) {
	seen := map[types.UID]bool{}
	for _, job := range snap.jobs {
		seen[job.UID] = true
	}
	var absent [][]byte
	for _, ref := range snap.cron.Status.Active {
		uid, err := jobUID(&ref)
		if err != nil || seen[ref.UID] {
			continue // It is not part of the question.
		}
		job, err := c.liveJob(ctx, snap.cron.Namespace, ref.Name)
		if err != nil {
			return nil, err
		}
		if job != nil && job.UID == ref.UID && controllingUID(job) == s.uid {
			s.madeJob(job)
			continue
		}
		absent = append(absent, uid)
	}
	return absent, nil
}

// liveJob reads a Job past every cache; nil when there is none of the name.
func (c *Controller) liveJob(ctx context.Context, namespace, name string) (*batchv1.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	job, err := c.cfg.Client.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading job %s: %w", name, err)
	}
	return job, nil
}

// ask calls the Decider and checks what it answers: a client distrusts its
// server.
func (c *Controller) ask(ctx context.Context, s *cronState, snap snapshot) (_ *jobpolicyv1.DecideCronJobResponse, err error) {
	ctx, end := c.span(ctx, SpanDecisionRequested, AttrRequestID.String(snap.req.GetRequestId()))
	defer func() { end(err) }()
	ctx, cancel := context.WithTimeout(ctx, c.cfg.DecisionTimeout)
	defer cancel()
	d, err := c.cfg.Decider.DecideCronJob(ctx, snap.req)
	if err != nil {
		c.metrics.shared.EngineFailed(err)
		c.refused(s, snap.cron, err)
		return nil, fmt.Errorf("no decision from the policy engine: %w", err)
	}
	switch {
	case d.GetRequestId() != snap.req.GetRequestId():
		return nil, fmt.Errorf("asked %q, got the answer to %q: %w", snap.req.GetRequestId(), d.GetRequestId(), errBadAnswer)
	case d.GetDisposition() == jobpolicyv1.Disposition_DISPOSITION_UNSPECIFIED || jobpolicyv1.Disposition_name[int32(d.GetDisposition())] == "":
		return nil, fmt.Errorf("disposition %v: %w", d.GetDisposition(), errBadAnswer)
	case d.GetCreate() != nil && d.GetStatus() != nil:
		return nil, fmt.Errorf("a creation and a status at once: %w", errBadAnswer)
	}
	return d, nil
}

// refused tells about a CronJob that the engine will not decide on.
func (c *Controller) refused(s *cronState, cron *batchv1.CronJob, err error) {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.Unimplemented:
		c.tellOnce(s, cron, "PolicyRejected", status.Convert(err).Message())
	}
}

// liveCron reads the CronJob past every cache and takes it in. errGone: it does
// not exist any more.
func (c *Controller) liveCron(ctx context.Context, s *cronState) (*batchv1.CronJob, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	cron, err := c.cfg.Client.BatchV1().CronJobs(s.namespace).Get(ctx, s.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, errGone
	}
	if err != nil {
		return nil, fmt.Errorf("reading cron job: %w", err)
	}
	if cron.UID != s.uid {
		return nil, errGone
	}
	cron.ManagedFields = nil
	s.observe(cron)
	return cron, nil
}

func (c *Controller) describe(ctx context.Context, snap snapshot, d *jobpolicyv1.DecideCronJobResponse) {
	describeDecision(ctx, d)
	c.log.DebugContext(ctx, "decided", slog.String("namespace", snap.cron.Namespace), slog.String("cronJob", snap.cron.Name),
		slog.String("summary", d.GetExplanation().GetSummary()))
}
