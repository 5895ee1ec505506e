package controllers

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// The engine answers as JobSet's own comparison does.
func TestSuccessPolicyIsMetAsBefore(t *testing.T) {
	met := 0
	for seed := range uint64(2000) {
		js, successful := drawJobSet(rand.New(rand.NewPCG(seed, 1)))
		before := numJobsMatchingSuccessPolicy(js, successful) >= numJobsExpectedToSucceed(js)
		now, err := successPolicyMet(t.Context(), js, successful)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if now != before {
			t.Fatalf("seed %d: the engine says %v, JobSet %v\npolicy %+v\ngroups %+v\n%d succeeded", seed, now, before, js.Spec.SuccessPolicy, js.Spec.ReplicatedJobs, len(successful))
		}
		if now {
			met++
		}
	}
	if met < 200 || met > 1800 {
		t.Errorf("%d of 2000 policies are met, want some of both", met)
	}
}

// drawJobSet draws a JobSet with up to four replicated Jobs, and which of its Jobs succeeded: one at least.
func drawJobSet(r *rand.Rand) (*jobset.JobSet, []*batchv1.Job) {
	policy := &jobset.SuccessPolicy{Operator: []jobset.Operator{jobset.OperatorAll, jobset.OperatorAny}[r.IntN(2)]}
	js := &jobset.JobSet{Spec: jobset.JobSetSpec{SuccessPolicy: policy}}
	js.Spec.ReplicatedJobs = []jobset.ReplicatedJob{{Name: "first", Replicas: 1}}
	successful := []*batchv1.Job{jobOf("first", 0)}
	for i := range r.IntN(4) {
		group := jobset.ReplicatedJob{Name: strconv.Itoa(i), Replicas: int32(r.IntN(4))}
		js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, group)
		if r.IntN(2) == 0 {
			policy.TargetReplicatedJobs = append(policy.TargetReplicatedJobs, group.Name)
		}
		for index := range group.Replicas {
			if r.IntN(3) > 0 {
				successful = append(successful, jobOf(group.Name, int(index)))
			}
		}
	}
	r.Shuffle(len(successful), func(i, j int) { successful[i], successful[j] = successful[j], successful[i] })
	return js, successful
}

func jobOf(group string, index int) *batchv1.Job {
	labels := map[string]string{jobset.ReplicatedJobNameKey: group, jobset.JobIndexKey: strconv.Itoa(index)}
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
}

func BenchmarkTimeToLive(b *testing.B) {
	js, now := finishedJobSet(), time.Now()
	measure(b, func() error { _, err := timeLeft(b.Context(), js, &now); return err })
}

func BenchmarkSuccessPolicy(b *testing.B) {
	js, successful := drawJobSet(rand.New(rand.NewPCG(3, 1)))
	measure(b, func() error { _, err := successPolicyMet(b.Context(), js, successful); return err })
}

func finishedJobSet() *jobset.JobSet {
	return &jobset.JobSet{
		Spec: jobset.JobSetSpec{TTLSecondsAfterFinished: new(int32(60))},
		Status: jobset.JobSetStatus{Conditions: []metav1.Condition{{
			Type: string(jobset.JobSetCompleted), Status: metav1.ConditionTrue, LastTransitionTime: metav1.Now(),
		}}},
	}
}
