package world

import (
	"fmt"
	"maps"
	"regexp"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// judgeNewRun: a Job that an executor creates for a CronJob is what the CronJob's template says, names the CronJob as its
// controller, and has the built-in controller's name for its time: the minutes since 1970.
func (j *judge) judgeNewRun(w apiserver.Write, c *cronRecord, r *jobRecord) {
	var wrong string
	for _, cron := range j.recentCrons(c) {
		if wrong = wrongNewRun(cron, r.job); wrong == "" {
			return
		}
	}
	j.breach("cron", r.key, r.uid, "%s created the Job, and %s", w.By, wrong)
}

func wrongNewRun(cron *batchv1.CronJob, job *batchv1.Job) string {
	template := cron.Spec.JobTemplate.DeepCopy()
	at, asked := scheduled(job), job.Annotations[wire.RunNow]
	annotations := maps.Clone(job.Annotations)
	for _, key := range []string{batchv1.CronJobScheduledTimestampAnnotation, wire.RunNow, "cronjob.kubernetes.io/instantiate"} {
		delete(annotations, key)
	}
	owner := []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "CronJob", Name: cron.Name, UID: cron.UID, Controller: new(true), BlockOwnerDeletion: new(true)}}
	switch {
	case !at.IsZero() && len(cron.Name) <= 52 && job.Name != fmt.Sprintf("%s-%d", cron.Name, at.Unix()/60):
		return sprint("its name does not say the time %s", at.Format(time.RFC3339))
	case (asked != "") != (job.Annotations["cronjob.kubernetes.io/instantiate"] != ""):
		return "only a run that somebody asked for says so"
	case !equality.Semantic.DeepEqual(job.OwnerReferences, owner):
		return sprint("its owner is %v", job.OwnerReferences)
	case !equality.Semantic.DeepEqual(job.Labels, template.Labels):
		return sprint("its labels are %v, not %v", job.Labels, template.Labels)
	case !equality.Semantic.DeepEqual(annotations, template.Annotations):
		return sprint("its annotations are %v, not %v", annotations, template.Annotations)
	}
	want := defaulted(template.Spec, job)
	if equality.Semantic.DeepEqual(want, job.Spec) {
		return ""
	}
	if diff := cmp.Diff(want, job.Spec, cmpopts.EquateEmpty(), cmp.Comparer(resource.Quantity.Equal)); diff != "" {
		return "its spec differs from what the template says (-template +Job): " + diff
	}
	return ""
}

// defaulted is a Job's spec with what the API server sets in a new Job.
func defaulted(spec batchv1.JobSpec, job *batchv1.Job) batchv1.JobSpec {
	if spec.Completions == nil && spec.Parallelism == nil {
		set(&spec.Completions, 1)
	}
	set(&spec.Parallelism, 1)
	set(&spec.BackoffLimit, 6)
	set(&spec.CompletionMode, batchv1.NonIndexedCompletion)
	set(&spec.Suspend, false)
	set(&spec.ManualSelector, false)
	replaces := batchv1.TerminatingOrFailed
	if spec.PodFailurePolicy != nil {
		replaces = batchv1.Failed
	}
	set(&spec.PodReplacementPolicy, replaces)
	if spec.Selector == nil {
		spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: string(job.UID)}}
		for key, value := range map[string]string{
			batchv1.ControllerUidLabel: string(job.UID), "controller-uid": string(job.UID), batchv1.JobNameLabel: job.Name, "job-name": job.Name,
		} {
			metav1.SetMetaDataLabel(&spec.Template.ObjectMeta, key, value)
		}
	}
	return spec
}

// judgeLastSuccess: status.lastSuccessfulTime is when a run of the CronJob completed, and no run that exists completed later.
func (j *judge) judgeLastSuccess(c *cronRecord) {
	last, known := c.cron.Status.LastSuccessfulTime, false
	for _, uid := range sortedUIDs(c.jobs) {
		r := c.jobs[uid]
		done := r.job.Status.CompletionTime
		if done == nil {
			continue
		}
		known = known || done.Equal(last)
		if !r.gone && r.cron() == c.uid && isRun(r) && (last == nil || last.Before(done)) {
			j.breach("cron", c.key, c.uid, "status.lastSuccessfulTime is %v, and Job %s completed at %s", last, r.key.Name, done)
		}
	}
	if last != nil && !known {
		j.breach("cron", c.key, c.uid, "status.lastSuccessfulTime is %s, and no Job of it completed then", last)
	}
}

// judgeReference: an event is about an object that is or was there, under its own name. Its times may go back, as an executor's clock may.
func (j *judge) judgeReference(w apiserver.Write, event *corev1.Event) {
	about := event.InvolvedObject
	kind, name := "", ""
	if r := j.jobs[about.UID]; r != nil {
		kind, name = "Job", r.key.Name
	} else if c := j.crons[about.UID]; c != nil {
		kind, name = "CronJob", c.key.Name
	} else {
		return
	}
	if about.GroupVersionKind() != batchv1.SchemeGroupVersion.WithKind(kind) || about.Name != name || about.Namespace != event.Namespace || event.Source.Component == "" || event.Count < 1 {
		j.breach("event", w.Key, about.UID, "an event of %s (%s) is about %s %s of %s, and its object is %s %s", w.By, event.Reason, about.Kind, about.Name, about.APIVersion, kind, name)
	}
	if said, ok := cronEvents[event.Reason]; ok && kind == "CronJob" && (event.Type != said.kind || !pattern(`^(?:`+regexp.QuoteMeta(combined)+`)?(?:`+said.message+`)$`).MatchString(event.Message)) {
		j.breach("event", w.Key, about.UID, "an event of %s says %s, %s: %q, and such an event says something else", w.By, event.Type, event.Reason, event.Message)
	}
}

// cronEvents are the events of CronJobs that the built-in controller (v1.37) has, too: their types and messages by reason.
var cronEvents = map[string]struct{ kind, message string }{
	"SuccessfulCreate": {corev1.EventTypeNormal, `Created job \S+`},
	"SuccessfulDelete": {corev1.EventTypeNormal, `Deleted job \S+`},
	"SawCompletedJob":  {corev1.EventTypeNormal, `Saw completed job: \S+, condition: (Complete|Failed)`},
	"MissingJob":       {corev1.EventTypeNormal, `Active job went missing: \S+`},
}

// wrongActive reports whether an entry of status.active does not name its Job.
func wrongActive(ref corev1.ObjectReference, r *jobRecord) bool {
	return ref.Name != r.key.Name || ref.Namespace != r.key.Namespace || ref.GroupVersionKind() != batchv1.SchemeGroupVersion.WithKind("Job")
}
