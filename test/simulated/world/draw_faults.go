package world

import "time"

// faults draws what fails. In one world of five nothing fails; only the actors cause
// trouble.
func (d *drawer) faults() {
	if d.chance(20) {
		return
	}
	for range pick(d, 1, 1, 2, 3, 5, 8) {
		d.fault()
	}
	if d.chance(15) {
		for range d.among(1, 3) {
			d.add(step{at: d.moment(), who: "server", verb: "break watches"})
		}
	}
	if d.chance(12) {
		d.add(step{at: d.moment(), who: "server", verb: "compact"})
	}
}

var faultKinds = []faultKind{
	lostRequest, lostAnswer, lostAnswer, lateRequest, lateAnswer, conflict, conflict, forbidden, invalid, throttled, serverError,
	unavailable, timedOut, timedOutDone, watchLag, watchLag, watchLag, watchBreak, duplicate, staleList, expired, putBack,
	engineAway, engineHangs, engineBusy, engineSlow, engineBroken,
}

func (d *drawer) fault() {
	f := &fault{kind: pick(d, faultKinds...), percent: pick(d, 3, 10, 30, 60, 100)}
	f.from, f.to = d.window()
	f.delay = span{time.Millisecond, d.within(10*time.Millisecond, 20*time.Second)}
	switch {
	case f.kind == staleList, f.kind == putBack:
	case f.kind.ofWatch():
		f.resource = pick(d, "", "pods", "pods", "jobs", "jobs", "cronjobs")
		if f.kind == watchLag {
			f.percent = pick(d, 30, 100)
		}
	case !f.kind.ofEngine():
		f.resource = pick(d, "", "", "pods", "jobs")
		f.verb = pick(d, "", "POST", "PUT", "PATCH", "DELETE", "GET")
		if f.kind == lateRequest || f.kind == lateAnswer {
			f.delay.most = d.within(100*time.Millisecond, 50*time.Second)
		}
	}
	d.p.faults = append(d.p.faults, f)
}

// deaths draws what happens to executors: they are killed or cut off, or their clocks
// are set.
func (d *drawer) deaths() {
	if d.chance(35) {
		for range pick(d, 1, 1, 1, 2, 3) {
			s := step{who: "executor", verb: "kill", n: d.IntN(2)}
			switch {
			case d.chance(60):
				s.write, s.before = d.among(1, 40), d.chance(30)
				if d.chance(40) {
					s.at = d.within(1, 20*time.Millisecond)
				}
			default:
				s.at = d.moment()
			}
			s.d = d.within(time.Millisecond, 10*time.Second) // Until the next one starts.
			d.add(s)
		}
	}
	// Clocks are right again when all is calm. The executor notices within seconds that
	// it planned by a wrong clock, unless the clock was right both at the start and at
	// the end.
	if late := d.p.calm - 20*time.Second; late > 0 && d.chance(12) {
		d.add(step{at: time.Duration(d.Int64N(int64(late))), who: "executor", verb: "set the clock", d: pick(d, time.Duration(-1), 1) * d.within(time.Second, 2*time.Hour)})
	}
}
