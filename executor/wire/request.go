package wire

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// JobRequest returns a request about a Job with its reference, spec and status. The caller
// adds everything else. The error says which part the contract cannot carry.
func JobRequest(job *batchv1.Job) (*jobpolicyv1.DecideJobRequest, error) {
	uid, err := UIDBytes(job.UID)
	if err != nil {
		return nil, fmt.Errorf("uid: %w", err)
	}
	spec, err := JobSpec(job)
	if err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	status, err := JobStatus(&job.Status)
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	return &jobpolicyv1.DecideJobRequest{
		Job:    &jobpolicyv1.JobRef{Uid: uid, Namespace: job.Namespace, Name: job.Name, Generation: job.Generation},
		Spec:   spec,
		Status: status,
	}, nil
}
