package wire

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Annotations of a CronJob that say who runs it.
const (
	// CronJobManagedBy names the controller that runs the CronJob, as spec.managedBy
	// does for a Job.
	CronJobManagedBy = "jobpolicy.dev/managed-by"
	// CronJobSuspend is "true" while no runs may start. It is for CronJobs whose
	// spec.suspend is true so that the built-in controller starts no runs.
	CronJobSuspend = "jobpolicy.dev/suspend"
)

// CronJobSuspended reports whether the CronJob's user has suspended it. If the CronJob is
// handed over to the controller that CronJobManagedBy names, CronJobSuspend says so instead
// of spec.suspend. A text that is not a boolean also suspends it, because a started run
// cannot be undone.
func CronJobSuspended(cron *batchv1.CronJob, handedOver bool) bool {
	if !handedOver {
		return cron.Spec.Suspend != nil && *cron.Spec.Suspend
	}
	text, ok := cron.Annotations[CronJobSuspend]
	if !ok {
		return false
	}
	yes, err := strconv.ParseBool(text)
	return yes || err != nil
}

// CronJobSpec converts the spec of a CronJob. suspended is what CronJobSuspended
// says; localZone is the zone of schedules that name none.
func CronJobSpec(cron *batchv1.CronJob, suspended bool, localZone string) *jobpolicyv1.CronJobSpec {
	in := &cron.Spec
	policy, problems := PolicySpec(cron.Annotations)
	options := policy.GetCronJob()
	if len(problems) > 0 {
		options = LastCronJobOptions(policy)
	}
	out := &jobpolicyv1.CronJobSpec{
		Schedule:                   in.Schedule,
		TimeZone:                   in.TimeZone,
		StartingDeadlineSeconds:    in.StartingDeadlineSeconds,
		ConcurrencyPolicy:          cmp.Or(concurrencyPolicies[in.ConcurrencyPolicy], jobpolicyv1.ConcurrencyPolicy_CONCURRENCY_POLICY_ALLOW),
		Suspend:                    suspended,
		SuccessfulJobsHistoryLimit: in.SuccessfulJobsHistoryLimit,
		FailedJobsHistoryLimit:     in.FailedJobsHistoryLimit,
		Deleting:                   cron.DeletionTimestamp != nil,
		CreationTime:               Timestamp(cron.CreationTimestamp.Time),
		LocalTimeZone:              localZone,
		Options:                    options,
		OptionProblems:             problems,
	}
	readRecords(cron.Annotations, out)
	return out
}

// optional converts a time that may be absent. The first moment of the year 1 does not
// count as absent, as in the built-in controller.
func optional(t *metav1.Time) *timestamppb.Timestamp {
	if t == nil {
		return nil
	}
	return Timestamp(t.Time)
}

// CronJobStatus converts the status of a CronJob, with what its annotation NextScheduleTime says. It leaves out references in the active
// list that cannot be Jobs: anybody who may write the status can put any reference there,
// and the contract allows Jobs only.
func CronJobStatus(cron *batchv1.CronJob) *jobpolicyv1.CronJobStatus {
	in := &cron.Status
	out := &jobpolicyv1.CronJobStatus{
		LastScheduleTime:   optional(in.LastScheduleTime),
		LastSuccessfulTime: optional(in.LastSuccessfulTime),
	}
	if next, err := time.Parse(time.RFC3339, cron.Annotations[NextScheduleTime]); err == nil {
		out.NextScheduleTime = Timestamp(next)
	}
	for _, ref := range in.Active {
		if uid, err := ActiveJobUID(&ref); err == nil {
			out.Active = append(out.Active, &jobpolicyv1.ActiveJob{Uid: uid, Name: ref.Name})
		}
	}
	return out
}

// ActiveJobUID is the UID of a reference in status.active. It fails if there can be no
// such Job.
func ActiveJobUID(ref *corev1.ObjectReference) ([]byte, error) {
	if problems := validation.IsDNS1123Subdomain(ref.Name); len(problems) > 0 {
		return nil, fmt.Errorf("%q is no job: %s", ref.Name, problems[0])
	}
	return UIDBytes(ref.UID)
}

// OwnedJob converts a Job that a CronJob controls.
func OwnedJob(job *batchv1.Job) (*jobpolicyv1.OwnedJob, error) {
	uid, err := UIDBytes(job.UID)
	if err != nil {
		return nil, err
	}
	m := &jobpolicyv1.OwnedJob{
		Uid: uid, Name: job.Name,
		Outcome:        JobOutcome(job),
		StartTime:      optional(job.Status.StartTime),
		CompletionTime: optional(job.Status.CompletionTime),
		Deleting:       job.DeletionTimestamp != nil,
		RunNow:         Text(job.Annotations[RunNow], maxTextBytes),
	}
	if condition := FinishedCondition(job); condition != nil {
		m.FinishTime = Timestamp(condition.LastTransitionTime.Time)
	}
	if at, err := time.Parse(time.RFC3339, job.Annotations[batchv1.CronJobScheduledTimestampAnnotation]); err == nil {
		m.ScheduledTime = Timestamp(at.Truncate(time.Second)) // as the API keeps times
	}
	return m, nil
}

// IsRun reports whether a Job of a CronJob is one of its runs, and not one that somebody created
// from its template (kubectl create job --from). The engine goes by the same annotations.
func IsRun(job *batchv1.Job) bool {
	_, err := time.Parse(time.RFC3339, job.Annotations[batchv1.CronJobScheduledTimestampAnnotation])
	return err == nil || job.Annotations[RunNow] != ""
}

// JobOutcome says whether a Job has ended, and how.
func JobOutcome(job *batchv1.Job) jobpolicyv1.JobOutcome {
	condition := FinishedCondition(job)
	switch {
	case condition == nil:
		return jobpolicyv1.JobOutcome_JOB_OUTCOME_ACTIVE
	case condition.Type == batchv1.JobComplete:
		return jobpolicyv1.JobOutcome_JOB_OUTCOME_COMPLETE
	default:
		return jobpolicyv1.JobOutcome_JOB_OUTCOME_FAILED
	}
}
