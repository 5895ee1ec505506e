// Command consumer asks the engine about a Job of two pods that has just begun.
package main

import (
	"fmt"
	"log"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func main() {
	now := timestamppb.New(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	decision, err := engine.DecideJob(&jobpolicyv1.DecideJobRequest{
		RequestId: "1",
		Now:       now,
		Job:       &jobpolicyv1.JobRef{Uid: make([]byte, 16), Namespace: "default", Name: "two"},
		Spec: &jobpolicyv1.JobSpec{
			Parallelism: 2, Completions: new(int32(2)),
			RestartPolicy: jobpolicyv1.RestartPolicy_RESTART_POLICY_NEVER,
		},
		Status: &jobpolicyv1.JobStatus{},
		Pods:   &jobpolicyv1.PodSummary{},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("create", decision.GetCreate().GetCount())
}
