package cronjob

import (
	"fmt"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"jobpolicy.dev/executor/wallclock"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// snapshot is a request, and the objects that it was made from.
type snapshot struct {
	cron *batchv1.CronJob
	jobs []*batchv1.Job
	req  *jobpolicyv1.DecideCronJobRequest
}

func (c *Controller) snapshot(s *cronState) (snapshot, error) {
	jobs := s.jobs(c.cfg.Jobs)
	s.mu.Lock()
	s.sequence++
	cron, sequence, taken, notBefore := s.cron, s.sequence, s.nameTaken, s.creation.Until()
	s.mu.Unlock()
	if cron == nil {
		return snapshot{}, errGone
	}
	uid, err := wire.UIDBytes(cron.UID)
	if err != nil {
		return snapshot{}, fmt.Errorf("uid: %w", err)
	}
	now := c.cfg.Now()
	req := &jobpolicyv1.DecideCronJobRequest{
		RequestId: string(cron.UID) + "-" + strconv.FormatUint(sequence, 10),
		Now:       timestamppb.New(now),
		CronJob: &jobpolicyv1.CronJobRef{
			Uid: uid, Namespace: cron.Namespace, Name: cron.Name, Generation: cron.Generation,
		},
		Spec:      specMessage(cron, c.scope.suspended(cron), c.cfg.TimeZone),
		Status:    statusMessage(&cron.Status),
		NameTaken: taken,
	}
	if !notBefore.IsZero() {
		until := timestamppb.New(wallclock.Of(notBefore, now))
		req.Deferrals = []*jobpolicyv1.Deferral{{Step: jobpolicyv1.Step_STEP_CREATE_JOB, Until: until}}
	}
	for _, job := range jobs {
		m, err := jobMessage(job)
		if err != nil {
			return snapshot{}, fmt.Errorf("job %s: %w", job.Name, err)
		}
		req.Jobs = append(req.Jobs, m)
	}
	return snapshot{cron: cron, jobs: jobs, req: req}, nil
}

func specMessage(cron *batchv1.CronJob, suspended bool, localZone string) *jobpolicyv1.CronJobSpec {
	in := &cron.Spec
	return &jobpolicyv1.CronJobSpec{
		Schedule:                   in.Schedule,
		TimeZone:                   in.TimeZone,
		StartingDeadlineSeconds:    in.StartingDeadlineSeconds,
		ConcurrencyPolicy:          concurrencyMessage(in.ConcurrencyPolicy),
		Suspend:                    suspended,
		SuccessfulJobsHistoryLimit: in.SuccessfulJobsHistoryLimit,
		FailedJobsHistoryLimit:     in.FailedJobsHistoryLimit,
		Deleting:                   cron.DeletionTimestamp != nil,
		CreationTime:               wire.Timestamp(cron.CreationTimestamp.Time),
		LocalTimeZone:              localZone,
		Annotations:                wire.Annotations(cron.Annotations),
	}
}

func concurrencyMessage(p batchv1.ConcurrencyPolicy) jobpolicyv1.ConcurrencyPolicy {
	switch p {
	case batchv1.ForbidConcurrent:
		return jobpolicyv1.ConcurrencyPolicy_CONCURRENCY_POLICY_FORBID
	case batchv1.ReplaceConcurrent:
		return jobpolicyv1.ConcurrencyPolicy_CONCURRENCY_POLICY_REPLACE
	default:
		return jobpolicyv1.ConcurrencyPolicy_CONCURRENCY_POLICY_ALLOW
	}
}

// statusMessage leaves out references in the active list that cannot be Jobs. Anybody
// who may write the status can put any reference there; the contract allows Jobs only.
func statusMessage(in *batchv1.CronJobStatus) *jobpolicyv1.CronJobStatus {
	out := &jobpolicyv1.CronJobStatus{
		LastScheduleTime:   timestamp(in.LastScheduleTime),
		LastSuccessfulTime: timestamp(in.LastSuccessfulTime),
	}
	for _, ref := range in.Active {
		if uid, err := jobUID(&ref); err == nil {
			out.Active = append(out.Active, &jobpolicyv1.ActiveJob{Uid: uid, Name: ref.Name})
		}
	}
	return out
}

// jobUID is the UID of a reference to a Job. It fails if there can be no such Job.
func jobUID(ref *corev1.ObjectReference) ([]byte, error) {
	if problems := validation.IsDNS1123Subdomain(ref.Name); len(problems) > 0 {
		return nil, fmt.Errorf("%q is no job: %s", ref.Name, problems[0])
	}
	return wire.UIDBytes(ref.UID)
}

func timestamp(t *metav1.Time) *timestamppb.Timestamp {
	if t == nil {
		return nil
	}
	return wire.Timestamp(t.Time)
}

func jobMessage(job *batchv1.Job) (*jobpolicyv1.OwnedJob, error) {
	uid, err := wire.UIDBytes(job.UID)
	if err != nil {
		return nil, err
	}
	m := &jobpolicyv1.OwnedJob{
		Uid: uid, Name: job.Name,
		Outcome:        outcome(job),
		StartTime:      timestamp(job.Status.StartTime),
		CompletionTime: timestamp(job.Status.CompletionTime),
		Deleting:       job.DeletionTimestamp != nil,
		Annotations:    wire.Annotations(job.Annotations),
	}
	if condition := wire.FinishedCondition(job); condition != nil {
		m.FinishTime = wire.Timestamp(condition.LastTransitionTime.Time)
	}
	if at, err := time.Parse(time.RFC3339, job.Annotations[batchv1.CronJobScheduledTimestampAnnotation]); err == nil {
		m.ScheduledTime = wire.Timestamp(at.Truncate(time.Second)) // as the API keeps times
	}
	return m, nil
}

func outcome(job *batchv1.Job) jobpolicyv1.JobOutcome {
	condition := wire.FinishedCondition(job)
	switch {
	case condition == nil:
		return jobpolicyv1.JobOutcome_JOB_OUTCOME_ACTIVE
	case condition.Type == batchv1.JobComplete:
		return jobpolicyv1.JobOutcome_JOB_OUTCOME_COMPLETE
	default:
		return jobpolicyv1.JobOutcome_JOB_OUTCOME_FAILED
	}
}

// apiStatus converts a status to the API's type. Of an active Job, the message has only
// UID and name; the rest comes from the list before, or from the Job.
func (snap *snapshot) apiStatus(m *jobpolicyv1.CronJobStatus) (*batchv1.CronJobStatus, error) {
	out := &batchv1.CronJobStatus{
		LastScheduleTime:   apiTime(m.GetLastScheduleTime()),
		LastSuccessfulTime: apiTime(m.GetLastSuccessfulTime()),
	}
	for _, active := range m.GetActive() {
		uid, err := wire.UIDString(active.GetUid())
		if err != nil {
			return nil, fmt.Errorf("active job %s: %w", active.GetName(), err)
		}
		out.Active = append(out.Active, snap.reference(uid, active.GetName()))
	}
	return out, nil
}

func (snap *snapshot) reference(uid types.UID, name string) corev1.ObjectReference {
	for _, ref := range snap.cron.Status.Active {
		if ref.UID == uid && ref.Name == name {
			return ref
		}
	}
	ref := corev1.ObjectReference{
		APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Namespace: snap.cron.Namespace, Name: name, UID: uid,
	}
	for _, job := range snap.jobs {
		if job.UID == uid {
			ref.ResourceVersion = job.ResourceVersion
		}
	}
	return ref
}

func apiTime(t *timestamppb.Timestamp) *metav1.Time {
	if t == nil {
		return nil
	}
	at := metav1.NewTime(t.AsTime())
	return &at
}
