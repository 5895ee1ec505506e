package jobspec

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cron draws the spec of a CronJob with a schedule. Its Jobs have one container.
func (d Source) Cron(schedule string) batchv1.CronJobSpec {
	spec := batchv1.CronJobSpec{
		Schedule:          schedule,
		ConcurrencyPolicy: Pick(d, batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent),
		JobTemplate:       batchv1.JobTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"of": "template"}}, Spec: New()},
	}
	if d.Chance(35) {
		spec.StartingDeadlineSeconds = new(Pick[int64](d, 0, 10, 100, 200, 3600, 100000))
	}
	if d.Chance(60) {
		spec.SuccessfulJobsHistoryLimit, spec.FailedJobsHistoryLimit = new(d.Int32N(3)), new(d.Int32N(3))
	}
	return spec
}
