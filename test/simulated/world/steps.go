package world

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/wire"
)

// do does a step.
func (w *world) do(s *step) error {
	doers := map[string]func(*step) error{
		"create": w.create, "create again": w.create, "delete": w.delete, "take finalizers off": w.unfinalize,
		"delete a pod": w.onPod, "delete a pod with force": w.onPod, "annotate a pod": w.onPod, "edit the index of a pod": w.onPod, "relabel a pod": w.onPod,
		"relabel and label back": w.onPod, "disown a pod": w.onPod, "copy a pod": w.onPod, "give a pod away": w.onPod, "put a finalizer on a pod": w.onPod,
		"put the tracking finalizer back": w.onPod, "take the tracking finalizer off": w.onPod,
		"forge a pod": w.forgePod, "forge a run": w.forgeRun, "create a pod of it": w.createPod, "create a loose pod": w.createPod, "take the name of a pod": w.takeName, "finish it": w.finish, "add a condition": w.addCondition,
		"limit pods": w.limitPods, "limit no pods": w.limitPods,
		"delete a run": w.deleteRun, "delete the last run": w.deleteLastRun, "create a run of a time to come": w.createRun, "create a run by hand": w.createRun, "break watches": w.breakWatches, "compact": w.compact, "kill": w.kill, "freeze": w.freeze, "hang for it": w.freeze, "delete the lease": w.deleteLease,
		"set the clock": w.setClock, "switch the built-in controller on": w.second.switchOn, "switch the built-in controller off": w.second.switchOff,
	}
	if do, ok := doers[s.verb]; ok {
		return do(s)
	}
	if edit := cronEdit(s, w.plan.executor.replace); edit != nil {
		return w.editCron(s, edit)
	}
	if edit := jobEdit(s); edit != nil {
		return w.editJob(s, edit)
	}
	return fmt.Errorf("nobody knows how to %s", s.verb)
}

// jobEdit is the change that a step makes to a Job; nil if it is another kind of step.
func jobEdit(s *step) func(*batchv1.Job) {
	n := int32(s.n)
	edits := map[string]func(*batchv1.Job){
		"suspend":           func(j *batchv1.Job) { j.Spec.Suspend = new(true) },
		"resume":            func(j *batchv1.Job) { j.Spec.Suspend = new(false) },
		"set parallelism":   func(j *batchv1.Job) { j.Spec.Parallelism = &n },
		"resize":            func(j *batchv1.Job) { j.Spec.Parallelism, j.Spec.Completions = &n, &n },
		"set deadline":      func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = new(int64(s.n)) },
		"set backoff limit": func(j *batchv1.Job) { j.Spec.BackoffLimit = &n },
		"set time to live":  func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = &n },
		"set the policy":    func(j *batchv1.Job) { metav1.SetMetaDataAnnotation(&j.ObjectMeta, wire.Policy, s.text) },
		"break the policy": func(j *batchv1.Job) {
			if j.Status.StartTime != nil { // Before its start, such a Job waits.
				metav1.SetMetaDataAnnotation(&j.ObjectMeta, wire.Policy, unreadable)
			}
		},
		"label": func(j *batchv1.Job) { label(&j.ObjectMeta, s.text) },
	}
	return edits[s.verb]
}

func label(m *metav1.ObjectMeta, text string) {
	key, value, _ := strings.Cut(text, "=")
	metav1.SetMetaDataLabel(m, key, value)
}

// cronEdit is the same for a CronJob. A CronJob of ours is suspended and resumed with
// an annotation.
func cronEdit(s *step, replace bool) func(*batchv1.CronJob) {
	suspend := func(c *batchv1.CronJob, yes bool) {
		if replace {
			c.Spec.Suspend = &yes
			return
		}
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, wire.CronJobSuspend, fmt.Sprint(yes))
	}
	edits := map[string]func(*batchv1.CronJob){
		"suspend cron":          func(c *batchv1.CronJob) { suspend(c, true) },
		"resume cron":           func(c *batchv1.CronJob) { suspend(c, false) },
		"set schedule":          func(c *batchv1.CronJob) { c.Spec.Schedule = s.text },
		"set zone":              func(c *batchv1.CronJob) { c.Spec.TimeZone = &s.text },
		"set concurrency":       func(c *batchv1.CronJob) { c.Spec.ConcurrencyPolicy = batchv1.ConcurrencyPolicy(s.text) },
		"set starting deadline": func(c *batchv1.CronJob) { c.Spec.StartingDeadlineSeconds = new(int64(s.n)) },
		"ask for a run": func(c *batchv1.CronJob) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, wire.RunNow, s.text)
		},
		"set cron options": func(c *batchv1.CronJob) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, wire.Policy, s.text)
		},
		"set history": func(c *batchv1.CronJob) {
			c.Spec.SuccessfulJobsHistoryLimit, c.Spec.FailedJobsHistoryLimit = new(int32(s.n)), new(int32(s.n))
		},
	}
	return edits[s.verb]
}

func (s *step) key() types.NamespacedName {
	namespace, name, _ := strings.Cut(s.on, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// create creates the Job or CronJob of the plan.
func (w *world) create(s *step) error {
	c := w.actor(s.who).BatchV1()
	for _, j := range w.plan.jobs {
		if j.on() != s.on {
			continue
		}
		_, err := c.Jobs(j.namespace).Create(background, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: j.name, Labels: j.labels, Annotations: j.annotations, Finalizers: j.finalizers},
			Spec:       *j.spec.DeepCopy(),
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			w.broken("plan", err.Error())
		}
		return err
	}
	for _, j := range w.plan.crons {
		if j.on() != s.on {
			continue
		}
		_, err := c.CronJobs(j.namespace).Create(background, &batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Name: j.name, Annotations: j.annotations}, Spec: *j.spec.DeepCopy(),
		}, metav1.CreateOptions{})
		return err
	}
	return fmt.Errorf("%s is not in the plan", s.on)
}

func (w *world) editJob(s *step, edit func(*batchv1.Job)) error {
	c, key := w.actor(s.who).BatchV1(), s.key()
	job, err := c.Jobs(key.Namespace).Get(background, key.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	edit(job)
	_, err = c.Jobs(key.Namespace).Update(background, job, metav1.UpdateOptions{})
	return err
}

func (w *world) editStatus(s *step, edit func(*batchv1.JobStatus)) error {
	c, key := w.actor(s.who).BatchV1(), s.key()
	job, err := c.Jobs(key.Namespace).Get(background, key.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	edit(&job.Status)
	_, err = c.Jobs(key.Namespace).UpdateStatus(background, job, metav1.UpdateOptions{})
	return err
}

func (w *world) editCron(s *step, edit func(*batchv1.CronJob)) error {
	c, key := w.actor(s.who).BatchV1(), s.key()
	cron, err := c.CronJobs(key.Namespace).Get(background, key.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	edit(cron)
	_, err = c.CronJobs(key.Namespace).Update(background, cron, metav1.UpdateOptions{})
	return err
}

func (w *world) delete(s *step) error {
	key, options := s.key(), metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletionPropagation(s.text))}
	c := w.actor(s.who).BatchV1()
	for _, cron := range w.plan.crons {
		if cron.name == key.Name {
			return c.CronJobs(key.Namespace).Delete(background, key.Name, options)
		}
	}
	return c.Jobs(key.Namespace).Delete(background, key.Name, options)
}

// unfinalize removes the finalizer that keeps a Job from being deleted.
func (w *world) unfinalize(s *step) error {
	return w.editJob(s, func(j *batchv1.Job) {
		j.Finalizers = without(j.Finalizers, "example.com/mine")
	})
}

// deleteRun deletes one of a CronJob's Jobs.
func (w *world) deleteRun(s *step) error {
	runs := owned[*batchv1.Job](w, "jobs", s.key())
	if len(runs) == 0 {
		return errNone
	}
	return w.deleteJob(s, runs[s.n%len(runs)])
}

// deleteLastRun deletes the newest of a CronJob's Jobs.
func (w *world) deleteLastRun(s *step) error {
	runs := owned[*batchv1.Job](w, "jobs", s.key())
	if len(runs) == 0 {
		return errNone
	}
	return w.deleteJob(s, runs[len(runs)-1])
}

func (w *world) deleteJob(s *step, job *batchv1.Job) error {
	return w.actor(s.who).BatchV1().Jobs(job.Namespace).Delete(background, job.Name,
		metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletionPropagation(s.text))})
}

// createRun creates a Job of a CronJob: one that claims to be a run of a future time, or one by hand, as
// kubectl create job --from does. The text is the version in its owner reference.
func (w *world) createRun(s *step) error {
	c, key := w.actor(s.who).BatchV1(), s.key()
	cron, err := c.CronJobs(key.Namespace).Get(background, key.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	owner := *metav1.NewControllerRef(cron, batchv1.SchemeGroupVersion.WithKind("CronJob"))
	if s.text != "" {
		owner.APIVersion = s.text
	}
	annotations := map[string]string{batchv1.CronJobScheduledTimestampAnnotation: time.Now().Add(s.d).UTC().Format(time.RFC3339)}
	spec := *cron.Spec.JobTemplate.Spec.DeepCopy()
	if s.verb == "create a run by hand" {
		spec.Suspend = new(s.n > 0)
		annotations = map[string]string{"cronjob.kubernetes.io/instantiate": "manual"}
	}
	_, err = c.Jobs(key.Namespace).Create(background, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name:            key.Name + "-by-hand",
			Annotations:     annotations,
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: spec,
	}, metav1.CreateOptions{})
	return err
}

// addCondition is a controller that writes a condition of its own into the Job's status.
func (w *world) addCondition(s *step) error {
	return w.editStatus(s, func(status *batchv1.JobStatus) {
		now := metav1.Now()
		status.Conditions = append(status.Conditions,
			batchv1.JobCondition{Type: "example.com/Seen", Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now})
	})
}

// finish ends an unmanaged Job as its controller does.
func (w *world) finish(s *step) error {
	return w.editStatus(s, func(status *batchv1.JobStatus) {
		now := metav1.Now()
		status.StartTime = &now
		status.Conditions = append(status.Conditions,
			batchv1.JobCondition{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, LastTransitionTime: now},
			batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, LastTransitionTime: now})
	})
}
