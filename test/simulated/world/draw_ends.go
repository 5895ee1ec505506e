package world

import "time"

// endsPods lets Jobs fail while their pods run, and says that these are ended, and not deleted. Some nodes do not hear of it.
func (d *drawer) endsPods() {
	if d.podjob || len(d.p.situations) > 0 || d.p.executor.noticing {
		return
	}
	for i, j := range d.p.jobs {
		if d.begin(uint64(700 + i)); !d.chance(15) {
			continue
		}
		j.addOptions(map[string]any{"whenJobFails": pick(d, "EndPods", "EndPods", "EndPods", "DeletePods")})
		j.spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(pick(d, 0, 5, 30)))
		if d.chance(60) {
			j.spec.BackoffLimit = new(int32(d.among(0, 2)))
		}
		for k := range j.fates {
			f := &j.fates[k]
			if d.chance(50) {
				f.end = pick(d, restless, endsBadly)
				f.run += d.within(time.Second, time.Minute)
			}
			f.deaf = d.chance(25)
		}
	}
}
