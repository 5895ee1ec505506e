package world

import "time"

// neverStarts gives pods problems to start with, and Jobs options that say what becomes of such pods.
func (d *drawer) neverStarts() {
	if len(d.p.situations) > 0 || d.p.executor.noticing {
		return
	}
	for i, j := range d.p.jobs {
		if d.begin(uint64(500 + i)); !d.chance(15) {
			continue
		}
		problems := []string{"Unschedulable", "VolumeOrSandbox", "Image", "SecurityContext", "Configuration"}
		d.Shuffle(len(problems), func(a, b int) { problems[a], problems[b] = problems[b], problems[a] })
		for k := range j.fates {
			if f := &j.fates[k]; d.chance(60) {
				f.problem, f.shows = pick(d, problems[:3]...), d.within(time.Millisecond, 10*time.Second)
				f.start = f.shows + d.within(time.Second, 3*time.Minute)
			}
		}
		var options []any
		for _, problem := range problems[:d.among(1, 2)] {
			actions := []string{"", "Count", "Count", "FailJob"}
			if j.spec.BackoffLimitPerIndex != nil {
				actions = append(actions, "FailIndex", "FailIndex")
			}
			o := map[string]any{"problem": problem, "afterSeconds": d.among(1, 90)}
			if action := pick(d, actions...); action != "" {
				o["action"] = action
			}
			options = append(options, o)
		}
		j.addOptions(map[string]any{"neverStarted": options})
	}
}
