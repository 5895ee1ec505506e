package world

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/wire"
)

// standstills adds what the metrics of alerts tell of, and what goes on until the end of the world: Jobs whose pods
// cannot start, or that have no retry left, and CronJobs whose runs are due and do not start.
func (d *drawer) standstills() {
	p := d.p
	if d.begin(600); d.podjob || len(p.situations) > 0 || p.executor.noticing || !briefWithJobs(p) || !d.chance(10) {
		return
	}
	d.situated("what stands still")
	p.calm = max(p.calm, 6*time.Minute)
	if d.chance(70) {
		d.stuckJob()
	}
	if d.chance(60) {
		d.lastTry()
	}
	for i := range d.among(0, 2) {
		d.lateCron(fmt.Sprintf("late-%c", 'a'+i))
	}
	if !d.faultless {
		d.add(step{at: p.calm - d.within(time.Second, 3*time.Minute), who: "executor", verb: "kill", d: d.within(time.Millisecond, 10*time.Second)})
	}
}

// plainSpec is that of a Job of plain pods.
func plainSpec(parallelism, backoffLimit int) batchv1.JobSpec {
	return batchv1.JobSpec{
		Parallelism: new(int32(parallelism)), Completions: new(int32(parallelism)), BackoffLimit: new(int32(backoffLimit)), ManagedBy: new(executor.ManagedBy),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "main"}}}},
	}
}

// early adds a Job that is created early.
func (d *drawer) early(name string, spec batchv1.JobSpec) *jobPlan {
	j := &jobPlan{namespace: namespace, name: name, spec: spec}
	d.p.jobs = append(d.p.jobs, j)
	d.add(step{at: d.within(time.Millisecond, time.Minute), who: "user", verb: "create", on: j.on()})
	return j
}

// stuckJob draws a Job whose pods never start. Somebody may suspend it for a moment.
func (d *drawer) stuckJob() {
	j := d.early("stuck", plainSpec(d.among(1, 3), 6))
	for range 9 {
		j.fates = append(j.fates, fate{
			start: 24 * time.Hour, linger: time.Second, end: restless, problem: pick(d, "Unschedulable", "Image", "Configuration"), shows: d.within(time.Millisecond, 10*time.Second),
		})
	}
	if d.chance(40) {
		at := d.p.calm - d.within(time.Minute, 4*time.Minute)
		d.add(step{at: at, who: "user", verb: "suspend", on: j.on()})
		d.add(step{at: at + d.within(time.Second, 30*time.Second), who: "user", verb: "resume", on: j.on()})
	}
}

// lastTry draws a Job that has no retry left, and whose last pods run on. The failed ones may be deleted.
func (d *drawer) lastTry() {
	limit := d.among(1, 2)
	j := d.early("last-try", plainSpec(1, limit))
	for range limit {
		j.fates = append(j.fates, fate{run: d.within(time.Millisecond, 10*time.Second), end: endsBadly, exit: 1})
	}
	j.fates = append(j.fates, fate{end: restless, linger: time.Second})
	if d.chance(60) {
		j.addOptions(map[string]any{"keepFinishedPods": map[string]any{"failed": 0}})
	}
}

// lateCron draws a CronJob whose first run lasts, so that the next ones do not start.
func (d *drawer) lateCron(name string) {
	c := &cronPlan{namespace: namespace, name: name, spec: batchv1.CronJobSpec{
		Schedule: pick(d, "*/7 * * * *", "*/11 * * * *", "1-59/13 * * * *"), ConcurrencyPolicy: batchv1.ForbidConcurrent, TimeZone: new("Etc/UTC"),
		JobTemplate: batchv1.JobTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}}, Spec: plainSpec(1, 6)},
	}}
	if d.chance(60) {
		c.spec.StartingDeadlineSeconds = new(int64(d.among(5, 100)))
	}
	if !d.p.executor.replace {
		c.annotations = map[string]string{wire.CronJobManagedBy: executor.ManagedBy}
		c.spec.Suspend = new(true)
	}
	c.fates = []fate{{end: restless, linger: time.Second}, {end: restless, linger: time.Second}}
	d.p.crons = append(d.p.crons, c)
	d.add(step{at: d.within(time.Millisecond, time.Minute), who: "user", verb: "create", on: c.on()})
}
