package world

import (
	"encoding/json"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/test/simulated/jobspec"
)

// options gives Jobs options of their own: some one, some several. A rare situation is about
// upstream's delays and deadlines, so its Jobs have none.
func (d *drawer) options() {
	if len(d.p.situations) > 0 || d.p.executor.noticing {
		return
	}
	for i, j := range d.p.jobs {
		d.begin(uint64(200 + i))
		if !d.chance(20) || wire.HasPolicy(j.annotations) {
			continue
		}
		o := map[string]any{}
		if d.chance(60) {
			o["retryDelay"] = d.retryDelay()
		}
		if d.chance(40) {
			o["startDeadlineSeconds"] = d.among(1, 90)
			d.slowStarts(j)
		}
		if d.chance(40) {
			o["tryDeadlineSeconds"] = d.among(1, 60)
		}
		if d.chance(30) {
			o["terminationDeadlineSeconds"] = d.among(1, 60)
			d.lostNodes(j)
		}
		if d.chance(40) {
			o["nextTryResources"] = map[string]any{"resource": "Memory", "max": mostMemory, "onExitCodes": jobspec.Exits[:d.among(1, len(jobspec.Exits)-1)]}
			j.giveMemory()
			if o["retryDelay"] == nil {
				o["retryDelay"] = map[string]any{"initialSeconds": d.among(20, 120)} // Time for a restart before the next try.
			}
		}
		if d.chance(40) {
			o["keepFinishedPods"] = d.keepFinished()
		}
		if o["terminationDeadlineSeconds"] != nil && d.chance(50) {
			o["terminationDeadlineNode"] = "NotReady"
			d.slowNodes(j)
		}
		j.setOptions(o)
	}
}

func (d *drawer) keepFinished() map[string]any {
	keep := map[string]any{}
	for _, phase := range []string{"succeeded", "failed"} {
		if d.chance(80) {
			keep[phase] = pick(d, 0, 1, d.among(0, 4))
		}
	}
	return keep
}

// leastMemory is the limit of all containers whose memory is raised, and mostMemory is what it may become.
const (
	leastMemory = "64Mi"
	mostMemory  = "200Mi"
)

// giveMemory gives each container a limit that can be raised.
func (j *jobPlan) giveMemory() {
	for i := range j.spec.Template.Spec.Containers {
		limit := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(leastMemory)}
		j.spec.Template.Spec.Containers[i].Resources.Limits = limit
	}
}

// retryDelay draws delays of at most five minutes, so that those with jitter are no longer than
// upstream's longest. They never get shorter: an executor may know of more failures than it must.
func (d *drawer) retryDelay() map[string]any {
	delay := map[string]any{}
	switch initial := d.among(1, 40); d.IntN(4) {
	case 0:
		delay["initialSeconds"] = initial
		delay["maxSeconds"] = initial + d.among(0, 260)
	case 1:
		delay["maxSeconds"] = d.among(1, 300)
	case 2:
		delay["factor"], delay["maxSeconds"] = pick(d, 1, 1.5, 10), 300
	case 3:
		delay["delaysSeconds"] = []int{initial, d.among(initial, 200), 200 + d.among(0, 100)}
	}
	if d.chance(40) {
		delay["jitterPercent"] = d.among(1, 100)
	}
	return delay
}

// slowStarts lets pods start so late that none may run before a deadline to start.
func (d *drawer) slowStarts(j *jobPlan) {
	if !d.chance(60) {
		return
	}
	for i := range j.fates {
		j.fates[i].start = d.within(time.Second, 3*time.Minute)
	}
}

// lostNodes takes the nodes of pods away: for longer than their Job waits, or for ever.
func (d *drawer) lostNodes(j *jobPlan) {
	if d.chance(70) {
		j.spec.PodReplacementPolicy = new(batchv1.Failed)
	}
	for i := range j.fates {
		if d.chance(40) {
			j.fates[i].end, j.fates[i].patience = nodeLost, pick(d, 0, d.within(31*time.Second, 3*time.Minute), forEver)
		}
	}
}

// slowNodes lets the nodes of lost pods be Ready for a while longer, or as long as they are there.
func (d *drawer) slowNodes(j *jobPlan) {
	for i := range j.fates {
		if f := &j.fates[i]; f.end == nodeLost {
			f.alone, f.unready = true, pick(d, 0, d.within(time.Second, 3*time.Minute), forEver)
		}
	}
}

// setOptions writes options as people do.
func (j *jobPlan) setOptions(o map[string]any) {
	if len(o) == 0 {
		return
	}
	text, err := json.Marshal(map[string]any{"job": o})
	if err != nil {
		panic(err)
	}
	if j.annotations == nil {
		j.annotations = map[string]string{}
	}
	j.annotations[wire.Policy] = string(text)
}

// optionFeatures calls set for each option.
func (j *jobPlan) optionFeatures(set map[string]bool) {
	for _, name := range []string{"retryDelay", "quotaMaxSeconds", "startDeadlineSeconds", "tryDeadlineSeconds", "terminationDeadlineSeconds", "terminationDeadlineNode", "neverStarted", "nextTryResources", "endCondition", "endConditionFailures", "keepFinishedPods", "whenJobFails"} {
		feature := "option " + name
		set[feature] = set[feature] || strings.Contains(j.annotations[wire.Policy], name)
	}
}
