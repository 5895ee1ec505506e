package controller

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	"github.com/kubeflow/trainer/v2/pkg/constants"
	"github.com/kubeflow/trainer/v2/pkg/policyengine"
	"github.com/kubeflow/trainer/v2/pkg/util/trainjob"
)

// reconcileDeadline fails a TrainJob that was active for its deadline, and deletes its JobSet. Otherwise it returns when to look
// again: never, if no deadline runs. An error is one that waiting does not heal.
func (r *TrainJobReconciler) reconcileDeadline(ctx context.Context, trainJob *trainer.TrainJob) (ctrl.Result, error) {
	if trainJob.Spec.ActiveDeadlineSeconds == 0 || trainjob.IsTrainJobFinished(trainJob) {
		return ctrl.Result{}, nil
	}
	now := time.Now()
	deadlines, err := deadlinesOf(ctx, trainJob, now)
	switch {
	case err != nil:
		wait, err := policyengine.Later(ctx, err)
		return ctrl.Result{RequeueAfter: wait}, err
	case deadlines.GetActiveDeadlinePassed():
		setFailedCondition(trainJob, constants.TrainJobDeadlineExceededMessage, trainer.TrainJobDeadlineExceededReason)
		r.deleteJobSet(ctx, trainJob)
	case deadlines.GetActiveDeadline() != nil:
		return ctrl.Result{RequeueAfter: deadlines.GetActiveDeadline().AsTime().Sub(now)}, nil
	}
	return ctrl.Result{}, nil
}

// deadlinesOf asks the engine about a TrainJob that has not finished.
func deadlinesOf(ctx context.Context, trainJob *trainer.TrainJob, now time.Time) (*jobpolicyv1.JobDeadlines, error) {
	answers, err := policyengine.Ask(ctx, jobpolicyv1grpc.PolicyServiceClient.ComputeDeadlines, &jobpolicyv1.ComputeDeadlinesRequest{
		Now: timestamppb.New(now),
		Jobs: []*jobpolicyv1.JobLifetime{{
			Spec:   &jobpolicyv1.JobSpec{ActiveDeadlineSeconds: &trainJob.Spec.ActiveDeadlineSeconds, Suspend: ptr.Deref(trainJob.Spec.Suspend, false)},
			Status: &jobpolicyv1.JobStatus{StartTime: timestamppb.New(activeSince(trainJob).Time)},
		}},
	})
	if err != nil {
		return nil, err
	}
	return answer.Only(answers.GetDeadlines())
}

// activeSince is when a TrainJob was last resumed, or created.
func activeSince(trainJob *trainer.TrainJob) metav1.Time {
	suspended := meta.FindStatusCondition(trainJob.Status.Conditions, trainer.TrainJobSuspended)
	if suspended != nil && suspended.Status == metav1.ConditionFalse {
		return suspended.LastTransitionTime
	}
	return trainJob.CreationTimestamp
}

// deleteJobSet deletes the JobSet of a TrainJob, and with it its pods.
func (r *TrainJobReconciler) deleteJobSet(ctx context.Context, trainJob *trainer.TrainJob) {
	jobSet := &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Name: trainJob.Name, Namespace: trainJob.Namespace}}
	if err := r.client.Delete(ctx, jobSet); client.IgnoreNotFound(err) != nil {
		ctrl.LoggerFrom(ctx).Error(err, "the JobSet of a TrainJob whose deadline has passed is not deleted")
	}
}
