package controllers

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/policyengine"
)

// askSuccessPolicy completes a JobSet if its success policy is met, and reports whether it is. wait is
// above 0 if that is not known yet. It is called in place of executeSuccessPolicy, which always knows.
func askSuccessPolicy(ctx context.Context, js *jobset.JobSet, owned *childJobs, updateStatusOpts *statusUpdateOpts) (completed bool, wait time.Duration, err error) {
	completed, err = successPolicyMet(ctx, js, owned.successful)
	if err != nil {
		wait, err = policyengine.Later(ctx, err)
		return false, wait, err
	}
	if completed {
		setJobSetCompletedCondition(js, updateStatusOpts)
	}
	return completed, 0, nil
}

// successPolicyMet asks the engine whether the Jobs that succeeded are enough.
func successPolicyMet(ctx context.Context, js *jobset.JobSet, successful []*batchv1.Job) (bool, error) {
	if numJobsExpectedToSucceed(js) == 0 { // The policy names replicated Jobs that have no Jobs.
		return true, nil
	}
	progress, err := successProgress(js, successful)
	if err != nil {
		return false, err
	}
	answers, err := policyengine.Ask(ctx, jobpolicyv1grpc.PolicyServiceClient.MatchSuccessPolicy,
		&jobpolicyv1.MatchSuccessPolicyRequest{Jobs: []*jobpolicyv1.SuccessPolicyProgress{progress}})
	if err != nil {
		return false, err
	}
	match, err := answer.Only(answers.GetMatches())
	return err == nil && match.RuleIndex != nil, err
}

// successProgress is the success policy of a JobSet as one of a Job whose indexes are the Jobs of the
// JobSet: those of its first replicated Job, then those of the next, and so on.
func successProgress(js *jobset.JobSet, successful []*batchv1.Job) (*jobpolicyv1.SuccessPolicyProgress, error) {
	var jobs int32
	var targets, succeeded []int32
	first := map[string]int32{}
	for _, group := range js.Spec.ReplicatedJobs {
		first[group.Name] = jobs
		if replicatedJobMatchesSuccessPolicy(js, &group) {
			targets = append(targets, indexes(jobs, group.Replicas)...)
		}
		jobs += group.Replicas
	}
	for _, job := range successful {
		index, err := strconv.ParseInt(job.Labels[jobset.JobIndexKey], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("label %s of Job %s: %w", jobset.JobIndexKey, job.Name, err)
		}
		succeeded = append(succeeded, first[job.Labels[jobset.ReplicatedJobNameKey]]+int32(index))
	}
	slices.Sort(succeeded)
	return &jobpolicyv1.SuccessPolicyProgress{
		Policy: &jobpolicyv1.SuccessPolicy{Rules: []*jobpolicyv1.SuccessPolicyRule{{
			SucceededIndexes: answer.Indexes(targets...), SucceededCount: new(int32(numJobsExpectedToSucceed(js))),
		}}},
		Completions: jobs, SucceededIndexes: answer.Indexes(succeeded...),
	}, nil
}

// indexes are count indexes from first on.
func indexes(first, count int32) []int32 {
	all := make([]int32, count)
	for i := range all {
		all[i] = first + int32(i)
	}
	return all
}
