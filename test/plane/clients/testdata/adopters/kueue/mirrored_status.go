package job

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"sigs.k8s.io/kueue/pkg/policyengine"
)

// apiServerMinor is the version whose rules for statuses are asked about: 36 for v1.36. They are the same
// from v1.32 to v1.37.
const apiServerMinor = 36

// mirroredStatus returns what to write of the status of a remote Job into the local one. That is the
// status as it is, unless the API server would refuse it and accept it with counters that have not
// decreased: a Job that has moved to another worker cluster begins there from 0.
//
// The API server has the last word. So without an answer, and if neither is accepted, it is the status as
// it is.
func mirroredStatus(ctx context.Context, local *batchv1.Job, remote *batchv1.JobStatus) *batchv1.JobStatus {
	if equality.Semantic.DeepEqual(&local.Status, remote) {
		return remote
	}
	kept := remote.DeepCopy()
	kept.Succeeded, kept.Failed = max(remote.Succeeded, local.Status.Succeeded), max(remote.Failed, local.Status.Failed)
	checks, err := checkStatuses(ctx, local, remote, kept)
	log := ctrl.LoggerFrom(ctx)
	switch {
	case err != nil:
		log.Error(err, "the policy engine has not checked the status of the remote Job")
	case len(checks[0].Violations) == 0:
	case len(checks[1].Violations) == 0:
		log.Info("The local Job keeps counters of an earlier remote Job", "rules", rules(checks[0]))
		return kept
	default:
		log.Info("The API server will refuse the status of the remote Job", "rules", rules(checks[0]))
	}
	return remote
}

// checkStatuses asks whether the API server would accept each of some statuses for a Job.
func checkStatuses(ctx context.Context, job *batchv1.Job, statuses ...*batchv1.JobStatus) ([]*jobpolicyv1.JobStatusCheck, error) {
	before, err := statusMessage(&job.Status)
	if err != nil {
		return nil, err
	}
	request := &jobpolicyv1.CheckJobStatusRequest{KubernetesMinor: apiServerMinor}
	for _, status := range statuses {
		after, err := statusMessage(status)
		if err != nil {
			return nil, err
		}
		request.Updates = append(request.Updates, &jobpolicyv1.JobStatusUpdate{Spec: specMessage(&job.Spec), Before: before, After: after})
	}
	answers, err := policyengine.Ask(ctx, jobpolicyv1grpc.PolicyServiceClient.CheckJobStatus, request)
	if checks := answers.GetChecks(); err != nil || len(checks) == len(statuses) {
		return checks, err
	}
	return nil, fmt.Errorf("asked about %d statuses, got %d answers", len(statuses), len(answers.GetChecks()))
}

func rules(check *jobpolicyv1.JobStatusCheck) string {
	var names []string
	for _, v := range check.GetViolations() {
		names = append(names, v.GetRule())
	}
	return strings.Join(names, ", ")
}

// specMessage has what the rules for statuses read.
func specMessage(in *batchv1.JobSpec) *jobpolicyv1.JobSpec {
	out := &jobpolicyv1.JobSpec{
		Parallelism: ptr.Deref(in.Parallelism, 1), Completions: in.Completions,
		BackoffLimitPerIndex: in.BackoffLimitPerIndex, Suspend: ptr.Deref(in.Suspend, false),
	}
	if ptr.Deref(in.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion {
		out.CompletionMode = jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED
	}
	if in.SuccessPolicy != nil {
		out.SuccessPolicy = &jobpolicyv1.SuccessPolicy{}
	}
	return out
}

func statusMessage(in *batchv1.JobStatus) (*jobpolicyv1.JobStatus, error) {
	out := &jobpolicyv1.JobStatus{
		StartTime: timeMessage(in.StartTime), CompletionTime: timeMessage(in.CompletionTime),
		Active: in.Active, Ready: in.Ready, Terminating: in.Terminating, Succeeded: in.Succeeded, Failed: in.Failed,
	}
	var err error
	if out.CompletedIndexes, err = answer.ParseIndexes(in.CompletedIndexes); err != nil {
		return nil, err
	}
	if in.FailedIndexes != nil {
		if out.FailedIndexes, err = answer.ParseIndexes(*in.FailedIndexes); err != nil {
			return nil, err
		}
	}
	if in.UncountedTerminatedPods != nil {
		out.Uncounted = &jobpolicyv1.UncountedTerminatedPods{
			Succeeded: uidMessages(in.UncountedTerminatedPods.Succeeded), Failed: uidMessages(in.UncountedTerminatedPods.Failed),
		}
	}
	for _, c := range in.Conditions {
		status := jobpolicyv1.ConditionStatus_value["CONDITION_STATUS_"+strings.ToUpper(string(c.Status))]
		out.Conditions = append(out.Conditions, &jobpolicyv1.JobCondition{Type: string(c.Type), Status: jobpolicyv1.ConditionStatus(status)})
	}
	return out, nil
}

func timeMessage(t *metav1.Time) *timestamppb.Timestamp {
	if t == nil {
		return nil
	}
	return timestamppb.New(t.Time)
}

func uidMessages(uids []types.UID) (out [][]byte) {
	for _, uid := range uids {
		out = append(out, []byte(uid))
	}
	return out
}
