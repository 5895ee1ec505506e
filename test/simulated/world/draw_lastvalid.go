package world

import (
	"time"

	"jobpolicy.dev/executor/wire"
)

// breakPolicies lets users make the options of started Jobs unreadable, some until later and some for ever, and executors
// die after that: the last valid options count all the same.
func (d *drawer) breakPolicies() {
	if len(d.p.situations) > 0 || d.podjob || d.upstream || d.p.executor.noticing {
		return
	}
	for i, j := range d.p.jobs {
		d.begin(uint64(900 + i))
		text, created := j.annotations[wire.Policy], d.p.createdAt(j.on())
		if text == "" || text == unreadable || !d.chance(50) {
			continue
		}
		at := created + d.within(time.Second, max(d.p.calm-created, 2*time.Second))
		d.add(step{at: at, who: "user", verb: "break the policy", on: j.on()})
		if !d.faultless && d.chance(70) {
			d.add(step{at: at + d.within(time.Millisecond, time.Minute), who: "executor", verb: "kill", n: d.IntN(2), d: d.within(time.Millisecond, 10*time.Second)})
		}
		if d.chance(30) {
			d.add(step{at: at + d.within(time.Second, 5*time.Minute), who: "user", verb: "set the policy", on: j.on(), text: text})
		}
	}
}

// createdAt is when an object is created.
func (p *plan) createdAt(on string) time.Duration {
	for _, s := range p.steps {
		if s.on == on && s.verb == "create" {
			return s.at
		}
	}
	return 0
}
