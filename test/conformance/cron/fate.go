package cron

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const jobName = "job"

var (
	schedules = []string{
		"* * * * *", "* * * * *", "*/5 * * * *", "0 * * * *", "@hourly", "30 6-16/4 * * 1-5", "0 0 * * *", "@daily", "15 2 * * SUN",
		"0 9 1 * *", "@every 90s", "@every 1h30m", "59 23 31 2 *", "10,40 8-18 * JAN-DEC MON-FRI", "0 0 29 2 *",
	}
	zones = []string{"Europe/Berlin", "America/New_York", "Asia/Kolkata", "Etc/UTC", "Australia/Lord_Howe"}
)

// mark keeps in mind schedules whose runs are not all equally far apart, or that
// the built-in controller counts from its deadline.
func (f *fate) mark(schedule string) {
	f.every = f.every || strings.HasPrefix(schedule, "@every")
	f.irregular = f.irregular || f.every || slices.Contains([]string{"30 6-16/4 * * 1-5", "10,40 8-18 * JAN-DEC MON-FRI", "0 9 1 * *", "0 0 29 2 *"}, schedule)
}

func (f *fate) newSpec() *batchv1.CronJobSpec {
	spec := &batchv1.CronJobSpec{
		Schedule:          pick(f, schedules...),
		ConcurrencyPolicy: pick(f, batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent),
		JobTemplate: batchv1.JobTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"of": "template"}, Annotations: map[string]string{"also": "template"}},
			Spec:       jobSpec(),
		},
	}
	f.mark(spec.Schedule)
	if f.chance(40) {
		spec.TimeZone = new(pick(f, zones...))
	}
	if f.chance(35) {
		spec.StartingDeadlineSeconds = new(pick[int64](f, 0, 10, 100, 200, 3600, 100000))
	}
	if f.chance(60) {
		spec.SuccessfulJobsHistoryLimit, spec.FailedJobsHistoryLimit = new(f.Int32N(3)), new(f.Int32N(3))
	}
	if f.chance(10) {
		spec.Suspend = new(true)
	}
	return spec
}

func jobSpec() batchv1.JobSpec {
	return batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "none"}},
	}}}
}

func describe(spec *batchv1.CronJobSpec) string {
	short := spec.DeepCopy()
	short.JobTemplate = batchv1.JobTemplateSpec{}
	body, err := json.Marshal(short)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// before is what happens before time jumps.
func (w *world) before(ctx context.Context, f *fate, next time.Time) error {
	if f.spec == nil || f.taken || !f.chance(3) {
		return nil
	}
	f.taken = true
	name := fmt.Sprintf("%s-%d", cronName, next.Unix()/60)
	f.log = append(f.log, "somebody else makes a job "+name)
	return w.both(func(s *side) error {
		_, err := s.client.BatchV1().Jobs(f.namespace).Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: jobSpec()}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil // The CronJob was faster.
		}
		return err
	})
}

// act is what users do, and what becomes of Jobs.
func (w *world) act(ctx context.Context, f *fate) error {
	if f.spec == nil {
		return w.actOnJob(ctx, f)
	}
	// One thing at a time: the built-in controller forgets a run whose status write
	// comes too late.
	switch n := f.IntN(100); {
	case n < 50:
		return w.finish(ctx, f)
	case n < 58:
		return w.remove(ctx, f)
	case n < 62:
		return w.handmade(ctx, f)
	case n < 85:
		return w.edit(ctx, f)
	}
	return nil
}

func active(job *batchv1.Job) bool {
	return finishedCondition(job) == nil && job.DeletionTimestamp == nil
}

// finish lets the oldest run end.
func (w *world) finish(ctx context.Context, f *fate) error {
	how := pick(f, batchv1.JobComplete, batchv1.JobComplete, batchv1.JobFailed)
	return w.toOneRun(f, string(how), active, func(s *side, job *batchv1.Job) error { return w.end(ctx, s, job, how) })
}

// end writes the status that the Job controller would.
func (w *world) end(ctx context.Context, s *side, job *batchv1.Job, how batchv1.JobConditionType) error {
	now := metav1.NewTime(w.now)
	job = job.DeepCopy()
	job.Status.StartTime = &now
	interim := batchv1.JobFailureTarget
	if how == batchv1.JobComplete {
		interim, job.Status.CompletionTime = batchv1.JobSuccessCriteriaMet, &now
	}
	for _, t := range []batchv1.JobConditionType{interim, how} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	_, err := s.client.BatchV1().Jobs(job.Namespace).UpdateStatus(ctx, job, metav1.UpdateOptions{})
	return err
}

// toOneRun does something to the oldest run of a kind, on both sides.
func (w *world) toOneRun(f *fate, what string, which func(*batchv1.Job) bool, do func(*side, *batchv1.Job) error) error {
	own := func(job *batchv1.Job) bool { return metav1.GetControllerOf(job) != nil && which(job) }
	there := w.builtin.runsOf(f.namespace, own)
	if len(there) == 0 {
		return nil
	}
	name := there[f.IntN(len(there))].Name
	f.log = append(f.log, what+" "+name)
	return w.both(func(s *side) error {
		for _, job := range s.runsOf(f.namespace, own) {
			if job.Name == name {
				return do(s, job)
			}
		}
		return fmt.Errorf("%s: no job %s", s.name, name)
	})
}

// remove deletes a Job as a user would.
func (w *world) remove(ctx context.Context, f *fate) error {
	background := metav1.DeletePropagationBackground
	return w.toOneRun(f, "somebody deletes", func(*batchv1.Job) bool { return true }, func(s *side, job *batchv1.Job) error {
		return s.client.BatchV1().Jobs(f.namespace).Delete(ctx, job.Name, metav1.DeleteOptions{PropagationPolicy: &background})
	})
}

// handmade is what kubectl create job --from does.
func (w *world) handmade(ctx context.Context, f *fate) error {
	name := fmt.Sprintf("by-hand-%d", w.now.Unix())
	f.log = append(f.log, "somebody makes "+name+" of the template")
	return w.both(func(s *side) error {
		cron, err := s.client.BatchV1().CronJobs(f.namespace).Get(ctx, cronName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		owner := *metav1.NewControllerRef(cron, batchv1.SchemeGroupVersion.WithKind("CronJob"))
		_, err = s.client.BatchV1().Jobs(f.namespace).Create(ctx, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, OwnerReferences: []metav1.OwnerReference{owner}, Annotations: map[string]string{"cronjob.kubernetes.io/instantiate": "manual"},
			},
			Spec: jobSpec(),
		}, metav1.CreateOptions{})
		return err
	})
}

// edit changes the spec.
func (w *world) edit(ctx context.Context, f *fate) error {
	schedule := pick(f, schedules...)
	change := pick(f,
		fmt.Sprintf(`{"schedule":%q}`, schedule),
		fmt.Sprintf(`{"timeZone":%q}`, pick(f, zones...)),
		`{"timeZone":null}`, `{"suspend":true}`, `{"suspend":false}`, `{"suspend":false}`,
		fmt.Sprintf(`{"concurrencyPolicy":%q}`, pick(f, "Allow", "Forbid", "Replace")),
		fmt.Sprintf(`{"startingDeadlineSeconds":%d}`, pick(f, 0, 10, 100, 200, 3600)), `{"startingDeadlineSeconds":null}`,
		fmt.Sprintf(`{"successfulJobsHistoryLimit":%d}`, f.IntN(3)), fmt.Sprintf(`{"failedJobsHistoryLimit":%d}`, f.IntN(3)),
	)
	f.log = append(f.log, "edit "+change)
	f.mark(schedule)
	err := w.both(func(s *side) error {
		_, err := s.client.BatchV1().CronJobs(f.namespace).Patch(ctx, cronName, types.MergePatchType, []byte(`{"spec":`+change+`}`), metav1.PatchOptions{})
		return err
	})
	if err != nil || !strings.HasPrefix(change, `{"schedule"`) && !strings.HasPrefix(change, `{"timeZone"`) {
		return err
	}
	// After an edit of the schedule the built-in controller looks again only when
	// the next run is due, or when something else happens.
	return w.poke(ctx, f)
}

// beginJob makes a Job with a time to live, or without, that has finished.
func (w *world) beginJob(ctx context.Context, f *fate) error {
	if f.chance(80) {
		f.ttl = new(pick[int32](f, 0, 30, 100, 3600, 86400))
	}
	how := pick(f, batchv1.JobComplete, batchv1.JobFailed)
	spec := jobSpec()
	spec.TTLSecondsAfterFinished = f.ttl
	if f.chance(25) {
		spec.ManagedBy = new("example.com/other")
	}
	f.log = append(f.log, fmt.Sprintf("a job with a time to live of %s, %s", seconds(f.ttl), how))
	return w.both(func(s *side) error {
		job, err := s.client.BatchV1().Jobs(f.namespace).Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: jobName}, Spec: spec}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		return w.end(ctx, s, job, how)
	})
}

func seconds(ttl *int32) string {
	if ttl == nil {
		return "none"
	}
	return fmt.Sprintf("%ds", *ttl)
}

func (w *world) actOnJob(ctx context.Context, f *fate) error {
	if !f.chance(25) {
		return nil
	}
	change := pick(f, `{"ttlSecondsAfterFinished":null}`, `{"ttlSecondsAfterFinished":0}`, `{"ttlSecondsAfterFinished":100000}`, `{"ttlSecondsAfterFinished":600}`)
	f.log = append(f.log, "edit "+change)
	return w.both(func(s *side) error {
		_, err := s.client.BatchV1().Jobs(f.namespace).Patch(ctx, jobName, types.MergePatchType, []byte(`{"spec":`+change+`}`), metav1.PatchOptions{})
		return err
	})
}
