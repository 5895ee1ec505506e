package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/policyengine"
)

// executeTTLAfterFinishedPolicy deletes a finished JobSet whose time to live is over, its Jobs first.
// Otherwise it returns when to look again; 0 without a time to live.
func executeTTLAfterFinishedPolicy(ctx context.Context, c client.Client, clock clock.Clock, js *jobset.JobSet) (time.Duration, error) {
	if js.Spec.TTLSecondsAfterFinished == nil {
		return 0, nil
	}
	now := clock.Now()
	deadlines, err := deadlinesOf(ctx, js, &now)
	if err != nil {
		return policyengine.Later(ctx, fmt.Errorf("error checking if ttl expired: %w", err))
	}
	if !deadlines.GetExpired() {
		return left(deadlines, now), nil
	}
	ctrl.LoggerFrom(ctx).V(2).Info("the time to live is over, deleting the JobSet")
	return 0, c.Delete(ctx, js, client.PropagationPolicy(metav1.DeletePropagationForeground))
}

// checkIfTTLExpired reports whether the time to live of a finished JobSet is over. A JobSet that is
// being deleted has none.
func checkIfTTLExpired(ctx context.Context, clock clock.Clock, js *jobset.JobSet) (bool, error) {
	if js.Spec.TTLSecondsAfterFinished == nil {
		return false, nil
	}
	now := clock.Now()
	deadlines, err := deadlinesOf(ctx, js, &now)
	return deadlines.GetExpired(), err
}

// timeLeft returns how long a finished JobSet is kept from now on; below 0 if its time is over.
func timeLeft(ctx context.Context, js *jobset.JobSet, now *time.Time) (*time.Duration, error) {
	deadlines, err := deadlinesOf(ctx, js, now)
	if err != nil {
		return nil, err
	}
	return new(left(deadlines, *now)), nil
}

// requeueJobSetAfter is timeLeft for a JobSet that may have no time to live; then it is 0.
func requeueJobSetAfter(js *jobset.JobSet, now time.Time) (time.Duration, error) {
	if js.Spec.TTLSecondsAfterFinished == nil {
		return 0, nil
	}
	deadlines, err := deadlinesOf(context.Background(), js, &now)
	return left(deadlines, now), err
}

// left is 0 if the JobSet does not expire.
func left(deadlines *jobpolicyv1.JobDeadlines, now time.Time) time.Duration {
	if deadlines.GetExpirationTime() == nil {
		return 0
	}
	return deadlines.GetExpirationTime().AsTime().Sub(now)
}

// deadlinesOf asks the engine about a JobSet, which must have finished.
func deadlinesOf(ctx context.Context, js *jobset.JobSet, now *time.Time) (*jobpolicyv1.JobDeadlines, error) {
	status := &jobpolicyv1.JobStatus{Conditions: jobConditions(js)}
	switch finished := answer.Finished(status); {
	case finished == nil:
		return nil, fmt.Errorf("unable to find the status of the finished JobSet %s/%s", js.Namespace, js.Name)
	case finished.GetLastTransitionTime() == nil:
		return nil, fmt.Errorf("unable to find the time when the JobSet %s/%s finished", js.Namespace, js.Name)
	case now == nil:
		return nil, errors.New("calculated invalid expiration time, jobset cleanup will be deferred")
	}
	answers, err := policyengine.Ask(ctx, jobpolicyv1grpc.PolicyServiceClient.ComputeDeadlines, &jobpolicyv1.ComputeDeadlinesRequest{
		Now: timestamppb.New(*now),
		Jobs: []*jobpolicyv1.JobLifetime{{
			Spec:   &jobpolicyv1.JobSpec{TtlSecondsAfterFinished: js.Spec.TTLSecondsAfterFinished, Deleting: js.DeletionTimestamp != nil},
			Status: status,
		}},
	})
	if err != nil {
		return nil, err
	}
	return answer.Only(answers.GetDeadlines())
}

// jobConditions are the conditions that end a JobSet, as those that end a Job.
func jobConditions(js *jobset.JobSet) []*jobpolicyv1.JobCondition {
	types := map[string]string{string(jobset.JobSetCompleted): "Complete", string(jobset.JobSetFailed): "Failed"}
	var conditions []*jobpolicyv1.JobCondition
	for _, c := range js.Status.Conditions {
		if types[c.Type] == "" || c.Status != metav1.ConditionTrue {
			continue
		}
		condition := &jobpolicyv1.JobCondition{Type: types[c.Type], Status: jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE}
		if !c.LastTransitionTime.IsZero() {
			condition.LastTransitionTime = timestamppb.New(c.LastTransitionTime.Time)
		}
		conditions = append(conditions, condition)
	}
	return conditions
}
