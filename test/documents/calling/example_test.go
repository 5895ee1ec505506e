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
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/snapshot"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// One decision on a Job with two pods, of which one has succeeded.
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

	pods := []*corev1.Pod{
		newPod("86352ee5-2e4d-406a-9e8d-43d0c8f3b2a1", corev1.PodSucceeded, now.Add(-time.Second)),
		newPod("0f3f8a6e-6a3c-4b53-a0b4-54b6f1f5c4d2", corev1.PodRunning, now.Add(-10*time.Second)),
	}

	// The snapshot: what policy needs of the Job, and what package snapshot makes of
	// its pods: counts, and a row for each that has ended and holds the finalizer
	// batch.kubernetes.io/job-tracking.
	spec, err := wire.JobSpec(job)
	check(err)
	status, err := wire.JobStatus(&job.Status)
	check(err)
	jobUID, err := wire.UIDBytes(job.UID)
	check(err)
	var facts []snapshot.Pod
	for _, pod := range pods {
		f, err := wire.Pod(pod)
		check(err)
		facts = append(facts, f)
	}
	request := snapshot.Request(spec, status, facts, snapshot.Options{})
	request.RequestId, request.Now = "two-1", timestamppb.New(now)
	request.Job = &jobpolicyv1.JobRef{Uid: jobUID, Namespace: job.Namespace, Name: job.Name}

	decision, err := engine.DecideJob(request)
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

// newPod is a pod whose Ready condition changed last at the given time.
func newPod(uid types.UID, phase corev1.PodPhase, changed time.Time) *corev1.Pod {
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(changed)}
	if phase != corev1.PodRunning {
		ready.Status = corev1.ConditionFalse
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: uid, Finalizers: []string{batchv1.JobTrackingFinalizer}},
		Status:     corev1.PodStatus{Phase: phase, Conditions: []corev1.PodCondition{ready}},
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
