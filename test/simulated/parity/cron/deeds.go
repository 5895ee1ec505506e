package cron

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/test/simulated/jobspec"
)

const jobName = "job"

// A planner chooses what happens in a life, while it is played on the built-in side.
type planner struct {
	*life
	jumps int
}

// next adds the next deed, and reports whether there is one. The first deed creates the
// object; after it, jumps of time alternate with what users and Jobs do.
func (p *planner) next(s *side) bool {
	var d deed
	switch n := len(p.deeds); {
	case n > 2*p.jumps:
		return false
	case n == 0:
		d = p.begin()
		d.jump = aside
	case n%2 == 1:
		d = p.leap()
	case p.spec == nil:
		d = p.actOnJob()
	default:
		d = p.act(s)
	}
	d.irregular, d.every, d.hasty, d.taken = p.irregular, p.every, p.hasty, p.taken
	p.deeds = append(p.deeds, d)
	return true
}

// begin makes the object.
func (p *planner) begin() deed {
	if p.spec == nil {
		return p.beginJob()
	}
	return deed{text: "created: " + describe(p.spec), do: func(ctx context.Context, s *side) error {
		cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: cronName}, Spec: *p.spec.DeepCopy()}
		_, err := s.client.BatchV1().CronJobs(namespace).Create(ctx, cron, metav1.CreateOptions{})
		return err
	}}
}

// beginJob makes a finished Job, with or without a time to live.
func (p *planner) beginJob() deed {
	if p.chance(80) {
		p.ttl = new(pick[int32](p.life, 0, 30, 100, 3600, 86400))
	}
	how := pick(p.life, batchv1.JobComplete, batchv1.JobFailed)
	spec := jobspec.New()
	spec.TTLSecondsAfterFinished = p.ttl
	if p.chance(25) {
		spec.ManagedBy = new("example.com/other")
	}
	return deed{text: fmt.Sprintf("a job with a time to live of %s, %s", seconds(p.ttl), how), do: func(ctx context.Context, s *side) error {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: jobName}, Spec: *spec.DeepCopy()}
		if _, err := s.client.BatchV1().Jobs(namespace).Create(ctx, job, metav1.CreateOptions{}); err != nil {
			return err
		}
		return s.end(ctx, jobName, how)
	}}
}

func seconds(ttl *int32) string {
	if ttl == nil {
		return "none"
	}
	return fmt.Sprintf("%ds", *ttl)
}

// jumps of time: most are short, some go over days and clock changes. No jump ends exactly at
// a starting deadline, because the sides differ there: ours compares whole seconds.
var jumps = []time.Duration{
	20 * time.Second, time.Minute, 2 * time.Minute, 3 * time.Minute, 5 * time.Minute, 17 * time.Minute, time.Hour,
	3 * time.Hour, 25 * time.Hour, 49 * time.Hour, 8 * 24 * time.Hour, 100 * 24 * time.Hour,
}

// leap lets time go by. Sometimes somebody else first creates a Job with the name of a run.
func (p *planner) leap() deed {
	d := deed{jump: pick(p.life, jumps...)}
	d.asleep = d.jump > awake || p.chance(40)
	d.text = d.jump.String() + " later"
	if d.asleep {
		d.text += ", after a restart"
	}
	if p.spec == nil || p.taken || !p.chance(3) {
		return d
	}
	p.taken = true
	taken := takeName(d.jump)
	d.text, d.do = taken.text+"; "+d.text, taken.do
	return d
}

// takeName creates a Job with the name of the run that is due after a while, and lets this time go by.
func takeName(jump time.Duration) deed {
	return deed{text: "somebody else makes the job of a run", jump: jump, do: func(ctx context.Context, s *side) error {
		name := fmt.Sprintf("%s-%d", cronName, time.Now().Add(jump).Unix()/60)
		_, err := s.client.BatchV1().Jobs(namespace).Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: jobspec.New()}, metav1.CreateOptions{})
		return err
	}}
}

// act is one thing that a user does, or the end of a Job. Only one at a time: the built-in
// controller forgets a run whose status write comes too late.
func (p *planner) act(s *side) deed {
	switch n := p.IntN(100); {
	case n < 50:
		return p.finish(s)
	case n < 58:
		return p.remove(s)
	case n < 62:
		return handmade()
	case n < 85:
		return p.edit()
	}
	return deed{}
}

func active(job *batchv1.Job) bool {
	return finishedCondition(job) == nil && job.DeletionTimestamp == nil
}

// finish lets a run end.
func (p *planner) finish(s *side) deed {
	how := pick(p.life, batchv1.JobComplete, batchv1.JobComplete, batchv1.JobFailed)
	return p.toOneRun(s, string(how), active, func(ctx context.Context, s *side, name string) error { return s.end(ctx, name, how) })
}

// end writes the status that the Job controller would.
func (s *side) end(ctx context.Context, name string, how batchv1.JobConditionType) error {
	now := metav1.Now()
	job, err := s.client.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	job.Status.StartTime = &now
	interim := batchv1.JobFailureTarget
	if how == batchv1.JobComplete {
		interim, job.Status.CompletionTime = batchv1.JobSuccessCriteriaMet, &now
	}
	for _, t := range []batchv1.JobConditionType{interim, how} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	_, err = s.client.BatchV1().Jobs(namespace).UpdateStatus(ctx, job, metav1.UpdateOptions{})
	return err
}

// toOneRun does something to one of the runs of a kind.
func (p *planner) toOneRun(s *side, what string, which func(*batchv1.Job) bool, do func(context.Context, *side, string) error) deed {
	there := s.runsThat(which)
	if len(there) == 0 {
		return deed{}
	}
	name := there[p.IntN(len(there))].Name
	return deed{text: what + " " + name, do: func(ctx context.Context, s *side) error { return do(ctx, s, name) }}
}

// remove deletes a Job as a user would.
func (p *planner) remove(s *side) deed {
	background := metav1.DeletePropagationBackground
	return p.toOneRun(s, "somebody deletes", func(*batchv1.Job) bool { return true }, func(ctx context.Context, s *side, name string) error {
		return s.client.BatchV1().Jobs(namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
	})
}

// handmade does the same as kubectl create job --from. One time in four it writes a version of CronJobs that was
// removed into the owner reference, as the tools of some clouds do. Two times in four the Job belongs to something else of
// the CronJob's name: to an earlier CronJob, or to an object of another kind (kubernetes/kubernetes#120181).
func handmade() deed {
	return deed{text: "somebody makes a job of the template", do: func(ctx context.Context, s *side) error {
		cron, err := s.client.BatchV1().CronJobs(namespace).Get(ctx, cronName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		owner, now := *metav1.NewControllerRef(cron, batchv1.SchemeGroupVersion.WithKind("CronJob")), time.Now().Unix()
		switch now % 4 {
		case 1:
			owner.APIVersion = "batch/v1beta1"
		case 2:
			owner.UID = "earlier"
		case 3:
			owner.APIVersion, owner.Kind, owner.UID = "example.com/v1", "Widget", "widget"
		}
		_, err = s.client.BatchV1().Jobs(namespace).Create(ctx, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{
				Name:            fmt.Sprintf("by-hand-%d", now),
				OwnerReferences: []metav1.OwnerReference{owner},
				Annotations:     map[string]string{"cronjob.kubernetes.io/instantiate": "manual"},
			},
			Spec: jobspec.New(),
		}, metav1.CreateOptions{})
		return err
	}}
}

// edit changes the spec.
func (p *planner) edit() deed {
	schedule, zone := pick(p.life, schedules...), pick(p.life, zones...)
	change := pick(p.life,
		fmt.Sprintf(`{"schedule":%q}`, schedule),
		fmt.Sprintf(`{"timeZone":%q}`, zone),
		`{"timeZone":null}`, `{"suspend":true}`, `{"suspend":false}`, `{"suspend":false}`,
		fmt.Sprintf(`{"concurrencyPolicy":%q}`, pick(p.life, "Allow", "Forbid", "Replace")),
		fmt.Sprintf(`{"startingDeadlineSeconds":%d}`, pick(p.life, 0, 10, 100, 200, 3600)), `{"startingDeadlineSeconds":null}`,
		fmt.Sprintf(`{"successfulJobsHistoryLimit":%d}`, p.IntN(3)), fmt.Sprintf(`{"failedJobsHistoryLimit":%d}`, p.IntN(3)),
	)
	p.mark(schedule, zone)
	p.hasty = p.hasty || change == `{"startingDeadlineSeconds":0}`
	return deed{text: "edit " + change, do: func(ctx context.Context, s *side) error {
		crons := s.client.BatchV1().CronJobs(namespace)
		_, err := crons.Patch(ctx, cronName, types.MergePatchType, []byte(`{"spec":`+change+`}`), metav1.PatchOptions{})
		if err != nil || !strings.HasPrefix(change, `{"schedule"`) && !strings.HasPrefix(change, `{"timeZone"`) {
			return err
		}
		// After an edit of the schedule the built-in controller reconciles only when
		// the next run is due, or when something else happens.
		return poke(ctx, s)
	}}
}

// poke changes the CronJob so that a controller looks at it again.
func poke(ctx context.Context, s *side) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, pokeAnnotation, time.Now().Unix())
	_, err := s.client.BatchV1().CronJobs(namespace).Patch(ctx, cronName, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

func (p *planner) actOnJob() deed {
	if !p.chance(25) {
		return deed{}
	}
	change := pick(p.life, `{"ttlSecondsAfterFinished":null}`, `{"ttlSecondsAfterFinished":0}`, `{"ttlSecondsAfterFinished":100000}`, `{"ttlSecondsAfterFinished":600}`)
	return deed{text: "edit " + change, do: func(ctx context.Context, s *side) error {
		_, err := s.client.BatchV1().Jobs(namespace).Patch(ctx, jobName, types.MergePatchType, []byte(`{"spec":`+change+`}`), metav1.PatchOptions{})
		return err
	}}
}

// describe is a spec without its template.
func describe(spec *batchv1.CronJobSpec) string {
	short := spec.DeepCopy()
	short.JobTemplate = batchv1.JobTemplateSpec{}
	body, err := json.Marshal(short)
	if err != nil {
		return err.Error()
	}
	return string(body)
}
