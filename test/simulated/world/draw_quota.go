package world

import (
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"jobpolicy.dev/executor/wire"
)

// fullQuotas lets a quota refuse the pods of a Job for minutes, long enough for the delays between tries to differ. Most such
// Jobs say how long the delay may be at most.
func (d *drawer) fullQuotas() {
	if d.podjob || len(d.p.situations) > 0 || d.p.executor.noticing || d.p.overWeeks() {
		return
	}
	for i, j := range d.p.jobs {
		if d.begin(uint64(800 + i)); !d.chance(10) || j.namespace != namespace || d.p.has("limit pods") {
			continue
		}
		at := d.p.created(j.on())
		if at > 0 && d.chance(40) {
			at += d.within(time.Millisecond, 30*time.Second) // Some pods run.
		}
		ends := at + d.within(time.Minute, 5*time.Minute)
		d.add(step{at: at, who: "user", verb: "limit pods", n: pick(d, 0, 0, 1, 2)})
		d.add(step{at: ends, who: "user", verb: "limit no pods"})
		d.p.calm = max(d.p.calm, ends)
		if d.chance(80) {
			j.limitQuotaDelay(d.among(1, 15))
		}
	}
}

// created is when a user creates a Job; 0 if no user does.
func (p *plan) created(on string) time.Duration {
	i := slices.IndexFunc(p.steps, func(s *step) bool { return s.verb == "create" && s.on == on })
	if i < 0 {
		return 0
	}
	return p.steps[i].at
}

// limitQuotaDelay adds to the Job's retry delay how long it waits at most after a quota refused its pods.
func (j *jobPlan) limitQuotaDelay(seconds int) {
	var policy struct {
		Job struct{ RetryDelay map[string]any }
	}
	if err := yaml.Unmarshal([]byte(j.annotations[wire.Policy]), &policy); err != nil {
		return // Its options cannot be read.
	}
	delay := policy.Job.RetryDelay
	if delay == nil {
		delay = map[string]any{}
	}
	delay["quotaMaxSeconds"] = seconds
	j.addOptions(map[string]any{"retryDelay": delay})
}
