package e2e

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// Before MutableSchedulingDirectivesForSuspendedJobs, a Job kept its start time
// when it was suspended. The gate is a flag of the executor.
func TestStartTimeOfASuspendedJob(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		gate string
		keep bool
	}{
		"gone by default":           {gate: "", keep: false},
		"gone with the gate":        {gate: "MutableSchedulingDirectivesForSuspendedJobs=true", keep: false},
		"it stays without the gate": {gate: "MutableSchedulingDirectivesForSuspendedJobs=false", keep: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			const manager = "example.com/gates"
			executor := startExecutor(t, "--engine=embedded", "--managed-by="+manager, "--leader-elect=false", "--feature-gates="+tc.gate)
			namespace := newNamespace(t)
			createJob(t, namespace, "held", batchv1.JobSpec{ManagedBy: new(manager), Template: shell("sleep 600", corev1.RestartPolicyNever)})
			waitJob(t, namespace, "held", "active", func(job *batchv1.Job) bool { return job.Status.Active == 1 })
			patchJob(t, namespace, "held", `{"spec":{"suspend":true}}`)
			job := waitJob(t, namespace, "held", "suspended", func(job *batchv1.Job) bool {
				return conditionReason(job, batchv1.JobSuspended) != "" && *job.Status.Terminating == 0
			})
			if kept := job.Status.StartTime != nil; kept != tc.keep {
				t.Errorf("start time kept: %t, want %t", kept, tc.keep)
			}
			executor.kill()
		})
	}
}
