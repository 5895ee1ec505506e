// Package play makes a scenario that can be played in virtual time from the Job of a
// manifest, and a report from the play. The command kubectl jobpolicy simulate and the
// playground share it.
package play

import (
	"cmp"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/engine/simulate"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/jobcheck"
)

// Scenario returns sc with the Job's spec, its name, and the container that fails.
func Scenario(job *batchv1.Job, sc simulate.Scenario) (simulate.Scenario, error) {
	name := cmp.Or(job.Name, "job")
	if text := jobcheck.RestartPolicyProblem(&job.Spec); text != "" {
		return sc, fmt.Errorf("%s: spec.template.spec.restartPolicy: %s", name, text)
	}
	for _, p := range jobcheck.UnknownWords(&job.Spec) {
		return sc, fmt.Errorf("%s: spec.%s: %s", name, p.Path, p.Text)
	}
	spec, err := wire.JobSpec(job)
	if err != nil {
		return sc, fmt.Errorf("%s: %w", name, err)
	}
	sc.Spec = spec
	sc.Job = &jobpolicyv1.JobRef{Namespace: cmp.Or(job.Namespace, "default"), Name: name}
	if c := job.Spec.Template.Spec.Containers; len(c) > 0 {
		sc.Container = c[0].Name
	}
	return sc, nil
}

// JobOf is the Job of a CronJob's template.
func JobOf(cron *batchv1.CronJob) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: cron.ObjectMeta, Spec: cron.Spec.JobTemplate.Spec}
}
