package job

import (
	"context"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/policyengine"
)

// ReclaimablePods returns how many of a Job's parallel pods will not run again, because fewer indexes
// than that are left.
func (j *Job) ReclaimablePods(ctx context.Context, _ client.Client) ([]kueue.ReclaimablePod, error) {
	parallelism := ptr.Deref(j.Spec.Parallelism, 1)
	indexes := j.indexes(ctx, ptr.Deref(j.Spec.Completions, parallelism))
	if parallelism <= 1 || nothingDone(indexes) {
		return nil, nil
	}
	progress, err := askIndexes(ctx, indexes)
	if err != nil || nothingDone(progress) || progress.GetMissingCount() >= parallelism {
		return nil, err
	}
	return []kueue.ReclaimablePod{{Name: kueue.DefaultPodSetName, Count: parallelism - progress.GetMissingCount()}}, nil
}

// nothingDone reports whether no index is completed or failed for good.
func nothingDone(indexes interface {
	GetCompletedIndexes() *jobpolicyv1.IndexSet
	GetFailedIndexes() *jobpolicyv1.IndexSet
}) bool {
	return len(indexes.GetCompletedIndexes().GetRanges())+len(indexes.GetFailedIndexes().GetRanges()) == 0
}

// indexes are the indexes that will get no pod again. Those of a Job that is not Indexed are numbered as
// they succeed.
func (j *Job) indexes(ctx context.Context, completions int32) *jobpolicyv1.JobIndexes {
	done := &jobpolicyv1.JobIndexes{Completions: completions, MaxMissing: 1}
	switch {
	case ptr.Deref(j.Spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion:
		done.CompletedIndexes = readableIndexes(ctx, j.Status.CompletedIndexes)
		done.FailedIndexes = readableIndexes(ctx, ptr.Deref(j.Status.FailedIndexes, ""))
	case j.Status.Succeeded > 0:
		done.CompletedIndexes = &jobpolicyv1.IndexSet{Ranges: []*jobpolicyv1.IndexRange{{Last: j.Status.Succeeded - 1}}}
	}
	return done
}

// askIndexes asks the engine how far the indexes of a Job are.
func askIndexes(ctx context.Context, indexes *jobpolicyv1.JobIndexes) (*jobpolicyv1.IndexProgress, error) {
	answers, err := policyengine.Ask(ctx, jobpolicyv1grpc.PolicyServiceClient.ComputeIndexes,
		&jobpolicyv1.ComputeIndexesRequest{Jobs: []*jobpolicyv1.JobIndexes{indexes}})
	if err != nil {
		return nil, err
	}
	return answer.Only(answers.GetProgress())
}

// readableIndexes reads a set such as "1,3-5". It leaves out and logs what it cannot read or what is out
// of order: the API server has refused that since v1.32, and quota is kept for it.
func readableIndexes(ctx context.Context, text string) *jobpolicyv1.IndexSet {
	set := &jobpolicyv1.IndexSet{}
	for interval := range strings.SplitSeq(text, ",") {
		next, err := answer.ParseIndexes(interval)
		switch last := len(set.Ranges) - 1; {
		case err != nil:
			ctrl.LoggerFrom(ctx).V(3).Info("Ignoring an interval of indexes", "interval", interval, "error", err)
		case last >= 0 && len(next.Ranges) > 0 && next.Ranges[0].First <= set.Ranges[last].Last:
			ctrl.LoggerFrom(ctx).V(3).Info("Ignoring an interval of indexes that is out of order", "interval", interval)
		default:
			set.Ranges = append(set.Ranges, next.Ranges...)
		}
	}
	return set
}
