package world

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
)

// scaledDown gives the first Job pods that differ in what decides which of them goes first, and scales it up and down while
// nothing fails.
func (d *drawer) scaledDown() {
	d.situated("scaled down at rest")
	d.p.faults = nil
	n := d.among(3, 5)
	j, on, created := d.simpleJob(n)
	unready := d.chance(50) // Then restarts and ages decide.
	for range 4 * n {
		f := d.differs()
		if unready {
			f.start, f.ready = d.within(time.Millisecond, 5*time.Second), time.Hour
		}
		j.fates = append(j.fates, f)
	}
	at := created
	for range d.among(1, 3) {
		at += d.within(10*time.Second, 60*time.Second)
		d.add(step{at: at, who: "user", verb: "set parallelism", on: on, n: n + d.among(1, 3)})
		at += d.within(45*time.Second, 90*time.Second)
		d.add(step{at: at, who: "user", verb: "set parallelism", on: on, n: d.among(1, n-1)})
	}
	d.p.calm = max(d.p.calm, at+time.Minute)
}

// differs draws a pod that runs on: some pods have no node yet, some are not ready, and some have restarted.
func (d *drawer) differs() fate {
	f := fate{start: d.within(time.Millisecond, 5*time.Second), ready: d.within(time.Millisecond, 5*time.Second), end: restless, linger: d.within(time.Millisecond, time.Second)}
	switch k := d.IntN(100); {
	case k < 15:
		f.start = time.Hour
	case k < 40:
		f.ready = time.Hour
	case k < 55:
		f.restarts, f.run = int32(d.among(1, 3)), time.Second
	}
	return f
}

// copiedPod lets somebody create a second pod of an index, beside one that has been ready for a while.
func (d *drawer) copiedPod() {
	d.situated("a copied pod")
	d.p.faults = nil
	n := d.among(2, 4)
	j, on, created := d.simpleJob(n)
	j.spec.CompletionMode, j.spec.Completions = new(batchv1.IndexedCompletion), new(int32(n))
	for range 4 * n {
		f := d.differs()
		f.start, f.ready = d.within(time.Millisecond, 5*time.Second), d.within(time.Millisecond, 5*time.Second)
		j.fates = append(j.fates, f)
	}
	at := created
	for range d.among(1, 3) {
		at += d.within(30*time.Second, 60*time.Second)
		d.add(step{at: at, who: "user", verb: "copy a pod", on: on, n: d.IntN(n)})
	}
	d.p.calm = max(d.p.calm, at+time.Minute)
}
