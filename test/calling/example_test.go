// Package calling shows how a controller asks the engine as a Go package, and
// proves that docs/calling.md says all that is needed for it.
package calling

import (
	"fmt"
	"log"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// One round of a Job with two pods, of which one has succeeded.
func Example() {
	now := time.Date(2026, 1, 1, 12, 0, 30, 0, time.UTC)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "two", UID: "6b0c1f3e-8f0a-4d0e-9f6e-0d6a5c1b2a30"},
		Spec: batchv1.JobSpec{
			Completions: new(int32(2)), Parallelism: new(int32(2)),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}},
		},
		Status: batchv1.JobStatus{Active: 2, StartTime: &metav1.Time{Time: now.Add(-20 * time.Second)}},
	}

	// The snapshot: what policy needs of the Job, counts of its pods, and a row for
	// each that has ended and holds the finalizer batch.kubernetes.io/job-tracking.
	spec, err := wire.JobSpec(job)
	check(err)
	status, err := wire.JobStatus(&job.Status)
	check(err)
	jobUID, err := wire.UIDBytes(job.UID)
	check(err)
	podUID, err := wire.UIDBytes("86352ee5-2e4d-406a-9e8d-43d0c8f3b2a1")
	check(err)
	decision, err := engine.DecideJob(&jobpolicyv1.DecideJobRequest{
		RequestId: "two-1",
		Now:       timestamppb.New(now),
		Job:       &jobpolicyv1.JobRef{Uid: jobUID, Namespace: job.Namespace, Name: job.Name},
		Spec:      spec,
		Status:    status,
		Pods:      &jobpolicyv1.PodSummary{Active: 1, TrackedActive: 1, Ready: 1},
		UnaccountedPods: []*jobpolicyv1.UnaccountedPod{{
			Uid: podUID, Phase: jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED, FinishedTime: timestamppb.New(now.Add(-time.Second)),
		}},
	})
	check(err) // Of an invalid request, the error names each field.

	// The decision, in the order in which it is to be carried out.
	fmt.Println("create:", decision.GetCreate().GetCount(), "delete:", len(decision.GetDelete()))
	next, err := wire.APIStatus(decision.GetStatus())
	check(err)
	fmt.Println("status: active", next.Active, "succeeded", next.Succeeded, "recorded", next.UncountedTerminatedPods.Succeeded)
	for _, uid := range decision.GetRelease() {
		pod, err := wire.UIDString(uid)
		check(err)
		fmt.Println("then release:", pod)
	}
	fmt.Println("because:", decision.GetExplanation().GetSummary())
	// Output:
	// create: 0 delete: 0
	// status: active 1 succeeded 0 recorded [86352ee5-2e4d-406a-9e8d-43d0c8f3b2a1]
	// then release: 86352ee5-2e4d-406a-9e8d-43d0c8f3b2a1
	// because: active: 1 of 1 wanted; release finished pods: 1
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
