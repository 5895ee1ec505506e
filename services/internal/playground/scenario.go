// Package playground plays the Job of a manifest in virtual time. For the command kubectl jobpolicy
// simulate and the playground it makes a scenario of the Job, and a report of the play. For the
// page of the playground it also says when a CronJob runs. The page calls it in the browser, as
// WebAssembly (cmd/jobpolicy-playground), and the answer depends only on the page's input.
package playground

import (
	"cmp"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/engine/simulate"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/jobcheck"
)

// Scenario returns sc with the Job's spec, its name, and its pods. It refuses what cannot be
// played, by the name of the field.
func Scenario(job *batchv1.Job, sc simulate.Scenario) (simulate.Scenario, error) {
	name := cmp.Or(job.Name, "job")
	if text := jobcheck.RestartPolicyProblem(&job.Spec); text != "" {
		return sc, fmt.Errorf("%s: spec.template.spec.restartPolicy: %s", name, text)
	}
	for _, p := range jobcheck.WrongValues(&job.Spec) {
		return sc, fmt.Errorf("%s: spec.%s: %s", name, p.Path, p.Text)
	}
	spec, err := wire.JobSpec(job)
	if err != nil {
		return sc, fmt.Errorf("%s: %w", name, err)
	}
	if o := spec.GetOptions().GetNextTryResources(); o != nil && !wire.RaisesResources(&job.Spec.Template.Spec, o) {
		spec.Options.NextTryResources = nil // The play does not know what pods ask for, and would say that they get more.
	}
	sc.Spec = spec
	sc.Job = &jobpolicyv1.JobRef{Namespace: cmp.Or(job.Namespace, "default"), Name: name}
	pod := &job.Spec.Template.Spec
	if p := notPlayed(pod); p != nil {
		return sc, fmt.Errorf("%s: spec.template.spec.%s: %s", name, p.Path, p.Text)
	}
	sc.Containers = jobcheck.KubeletContainers(pod)
	if s := pod.ActiveDeadlineSeconds; s != nil {
		sc.PodDeadline = seconds(*s)
	}
	if s := pod.TerminationGracePeriodSeconds; s != nil {
		sc.GracePeriod = max(seconds(*s), 1) // 0 would be the default.
	}
	return sc, nil
}

// JobOf is the Job of a CronJob's template. It has the CronJob's name, but labels and annotations, and so
// its options, are those of the template.
func JobOf(cron *batchv1.CronJob) *batchv1.Job {
	template := &cron.Spec.JobTemplate
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: cron.Name, Namespace: cron.Namespace, Labels: template.Labels, Annotations: template.Annotations},
		Spec:       template.Spec,
	}
}
