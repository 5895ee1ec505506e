package world

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/test/simulated/jobspec"
)

const namespace = "default"

// elsewhere is the namespace of strangers. It has no Job and no CronJob that anything belongs to.
const elsewhere = "elsewhere"

// neighbour is the namespace of CronJobs that share a group with those of another one.
const neighbour = "blue"

// hungNamespace is where webhooks hang.
const hungNamespace = "hung"

// foreignManager manages Jobs that are not ours.
const foreignManager = jobspec.AnotherManager

// spec draws the spec of a Job. Six of ten are Indexed. Every pair of fields occurs
// together in some world.
func (d *drawer) spec() batchv1.JobSpec {
	spec := d.source().Spec()
	d.limits(&spec)
	d.manager(&spec)
	return spec
}

// source draws the fields of a spec.
func (d *drawer) source() jobspec.Source {
	return jobspec.Source{Rand: d.Rand, Style: jobspec.Style{Most: 5, Retries: 6, IndexRetries: 2}}
}

func (d *drawer) limits(spec *batchv1.JobSpec) {
	switch {
	case d.chance(8):
		spec.ActiveDeadlineSeconds = new(int64(d.among(1, 60)))
	case d.chance(8):
		spec.ActiveDeadlineSeconds = new(int64(d.among(60, 1200)))
	}
	if d.chance(15) {
		spec.TTLSecondsAfterFinished = new(int32(pick(d, 0, 1, 30, 600)))
	}
}

// manager draws who manages the Job. In coexist mode only Jobs that name us are ours.
func (d *drawer) manager(spec *batchv1.JobSpec) {
	switch k := d.IntN(100); {
	case k < 6:
		spec.ManagedBy = new(foreignManager)
	case k < 9 || d.p.executor.replace && k < 60:
		if k%3 == 0 {
			spec.ManagedBy = new(batchv1.JobControllerName)
		}
	default:
		spec.ManagedBy = new(executor.ManagedBy)
	}
}

// unreadable is a policy that cannot be read.
const unreadable = "{job: {ttlSecondsAfterFailed: soon}}"

// job draws a Job and the fates of its pods.
func (d *drawer) job(name string) *jobPlan {
	j := &jobPlan{namespace: namespace, name: name, spec: d.spec()}
	if d.chance(10) {
		labels := map[string]string{"app": pick(d, name, "shared")}
		j.spec.ManualSelector = new(true)
		j.spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		j.spec.Template.Labels = labels
	}
	if d.chance(8) {
		j.finalizers = []string{"example.com/mine"}
	}
	if d.chance(8) {
		j.annotations = map[string]string{wire.Policy: pick(d, "{job: {ttlSecondsAfterFailed: 20}}", "{job: {ttlSecondsAfterFailed: 20}}", unreadable)}
	}
	trouble := pick(d, 0, 20, 50, 80)
	for range d.among(1, 24) {
		j.fates = append(j.fates, d.fate(trouble))
	}
	return j
}

// fate draws what happens to a pod; trouble is the percentage of pods that do not
// simply succeed.
func (d *drawer) fate(trouble int) fate {
	f := fate{
		start: d.within(time.Millisecond, 5*time.Second), ready: d.within(time.Millisecond, 5*time.Second), run: d.within(time.Millisecond, 60*time.Second),
		end: endsWell, linger: d.within(time.Millisecond, 30*time.Second), obeys: d.chance(15),
	}
	if d.chance(10) {
		f.restarts = int32(d.among(1, 4))
	}
	if !d.chance(trouble) {
		return f
	}
	f.exit, f.container = pick(d, jobspec.Exits...), d.IntN(4)
	f.end = pick(d, endsBadly, endsBadly, endsBadly, endsBadly, evicted, preempted, removed, forced, nodeLost)
	if d.chance(5) {
		f.end = restless
	}
	return f
}
