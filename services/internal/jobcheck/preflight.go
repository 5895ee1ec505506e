package jobcheck

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/services/differences"
	"jobpolicy.dev/services/internal/manifest"
)

// A Touch is one difference, with the objects that it touches.
type Touch struct {
	// ID is that of the row in services/differences.
	ID string `json:"id"`
	// What is the situation. BuiltIn and Here are what the built-in controller and
	// jobpolicy do in it.
	What    string   `json:"what"`
	BuiltIn string   `json:"builtIn"`
	Here    string   `json:"here"`
	Objects []string `json:"objects"`
}

// Cluster holds the objects to check.
type Cluster struct {
	Jobs     []batchv1.Job
	CronJobs []batchv1.CronJob
	Now      time.Time
}

// difference is a row of services/differences that can be seen in an object. Those are left out that
// concern only a restart, a race or the answer of a failing API server.
type difference struct {
	id string
	// job and cron say whether an object is touched; nil: none of its kind is.
	job  func(*batchv1.Job, time.Time) bool
	cron func(*batchv1.CronJob, *Cluster) bool
}

// manyPods is how many pods one reconcile deletes.
const manyPods = 500

// longest is the longest duration, in seconds, that the built-in controller can compute
// with.
const longest = 292 * 365 * 24 * 3600

var visible = []difference{
	{
		id:  "ignored-disruption",
		job: func(j *batchv1.Job, _ time.Time) bool { return ignores(j, true) },
	},
	{
		id:  "running-when-failing",
		job: func(j *batchv1.Job, _ time.Time) bool { return ignores(j, false) },
	},
	{
		id: "kept-start-time",
		job: func(j *batchv1.Job, _ time.Time) bool {
			return ptr.Deref(j.Spec.Suspend, false) && j.Status.StartTime != nil && j.Spec.ActiveDeadlineSeconds != nil
		},
	},
	{
		id:  "many-deletions",
		job: func(j *batchv1.Job, _ time.Time) bool { return ptr.Deref(j.Spec.Parallelism, 1) > manyPods },
	},
	{
		id:  "long-deadline",
		job: func(j *batchv1.Job, _ time.Time) bool { return ptr.Deref(j.Spec.ActiveDeadlineSeconds, 0) > longest },
	},
	{
		id: "template-without-labels",
		job: func(j *batchv1.Job, _ time.Time) bool {
			return ptr.Deref(j.Spec.ManualSelector, false) && len(j.Spec.Template.Labels) == 0 && !wire.Indexed(j)
		},
	},
	{
		id: "future-schedule-time",
		cron: func(c *batchv1.CronJob, all *Cluster) bool {
			return c.Status.LastScheduleTime != nil && c.Status.LastScheduleTime.After(all.Now)
		},
	},
	{
		id:   "clock-changes",
		cron: func(c *batchv1.CronJob, _ *Cluster) bool { return losesRuns(c) },
	},
	{
		id: "every-with-short-deadline",
		cron: func(c *batchv1.CronJob, _ *Cluster) bool {
			every, ok := interval(c)
			return ok && c.Spec.StartingDeadlineSeconds != nil && *c.Spec.StartingDeadlineSeconds < int64(every/time.Second)
		},
	},
	{
		id:   "deadline-of-zero",
		cron: func(c *batchv1.CronJob, _ *Cluster) bool { return ptr.Deref(c.Spec.StartingDeadlineSeconds, 1) == 0 },
	},
	{
		id: "short-every",
		cron: func(c *batchv1.CronJob, _ *Cluster) bool {
			every, ok := interval(c)
			return ok && every < time.Minute
		},
	},
	{
		id:   "active-but-not-controlled",
		cron: lists,
	},
	{
		id:   "namesake",
		cron: namesake,
	},
}

// Preflight finds the Jobs and CronJobs of a cluster that a deliberate difference from the
// built-in controllers would touch, if jobpolicy took their place. It ignores finished Jobs and those of another
// controller.
func Preflight(c Cluster) []Touch {
	var out []Touch
	for _, d := range visible {
		row := differences.Find(d.id)
		t := Touch{ID: row.ID, What: plain(row.What), BuiltIn: plain(row.BuiltIn), Here: plain(row.Here)}
		for i := range c.Jobs {
			j := &c.Jobs[i]
			if d.job != nil && theirs(j) && wire.FinishedCondition(j) == nil && d.job(j, c.Now) {
				t.Objects = append(t.Objects, "job "+j.Namespace+"/"+j.Name)
			}
		}
		for i := range c.CronJobs {
			cron := &c.CronJobs[i]
			if d.cron != nil && d.cron(cron, &c) {
				t.Objects = append(t.Objects, "cronjob "+cron.Namespace+"/"+cron.Name)
			}
			// A difference touches a CronJob if it touches the Jobs of its template.
			if job := (&batchv1.Job{Spec: cron.Spec.JobTemplate.Spec}); d.job != nil && theirs(job) && d.job(job, c.Now) {
				t.Objects = append(t.Objects, "cronjob "+cron.Namespace+"/"+cron.Name)
			}
		}
		if len(t.Objects) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// plain is Markdown without its marks of code.
func plain(text string) string { return strings.ReplaceAll(text, "`", "") }

// theirs reports whether the built-in controller acts on a Job.
func theirs(j *batchv1.Job) bool {
	return ptr.Deref(j.Spec.ManagedBy, batchv1.JobControllerName) == batchv1.JobControllerName
}

// ignores reports whether a rule of the pod failure policy ignores failures, or
// disruptions.
func ignores(j *batchv1.Job, disruptions bool) bool {
	disruption := func(p batchv1.PodFailurePolicyOnPodConditionsPattern) bool { return p.Type == corev1.DisruptionTarget }
	policy := j.Spec.PodFailurePolicy
	return policy != nil && slices.ContainsFunc(policy.Rules, func(r batchv1.PodFailurePolicyRule) bool {
		return r.Action == batchv1.PodFailurePolicyActionIgnore && (!disruptions || slices.ContainsFunc(r.OnPodConditions, disruption))
	})
}

func losesRuns(c *batchv1.CronJob) bool {
	findings := Check(&manifest.Object{Kind: "CronJob", CronJob: c})
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Check == "clock-changes" })
}

// interval is the length of an @every schedule.
func interval(c *batchv1.CronJob) (time.Duration, bool) {
	text, ok := strings.CutPrefix(c.Spec.Schedule, "@every ")
	if !ok {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}

// lists reports whether status.active has a Job that exists and that the CronJob does not
// control.
func lists(c *batchv1.CronJob, all *Cluster) bool {
	active := map[types.UID]bool{}
	for _, ref := range c.Status.Active {
		active[ref.UID] = true
	}
	for i := range all.Jobs {
		j := &all.Jobs[i]
		if active[j.UID] && !wire.ControlsJob(c, j) {
			return true
		}
	}
	return false
}

// namesake reports whether the controller of a Job has the CronJob's name and is another
// object.
func namesake(c *batchv1.CronJob, all *Cluster) bool {
	for i := range all.Jobs {
		j := &all.Jobs[i]
		if owner := metav1.GetControllerOf(j); owner != nil && j.Namespace == c.Namespace && owner.Name == c.Name && !wire.ControlsJob(c, j) {
			return true
		}
	}
	return false
}

// Summary counts the Jobs by who acts on them.
func Summary(c Cluster) string {
	unfinished, builtin := 0, 0
	for i := range c.Jobs {
		j := &c.Jobs[i]
		if wire.FinishedCondition(j) != nil {
			continue
		}
		unfinished++
		if theirs(j) {
			builtin++
		}
	}
	return fmt.Sprintf("Jobs: %d, not finished: %d (of the built-in controller %d, of others %d); CronJobs: %d",
		len(c.Jobs), unfinished, builtin, unfinished-builtin, len(c.CronJobs))
}
