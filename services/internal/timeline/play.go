package timeline

import (
	"fmt"
	"time"

	"jobpolicy.dev/engine/simulate"
)

// Played is the chart of a play that began at a time: its pods, the conditions of the Job, and what the
// user did.
func Played(name string, begin time.Time, r *simulate.Result) Chart {
	last := begin
	if n := len(r.Moments); n > 0 {
		last = begin.Add(r.Moments[n-1].At)
	}
	var bars []Bar
	for _, p := range r.Pods {
		bars = append(bars, playedBar(begin, p))
	}
	var marks []Mark
	for _, e := range r.Timeline {
		switch e.Kind {
		case simulate.Condition, simulate.UserChange, simulate.JobDeleted:
			marks = append(marks, Mark{At: begin.Add(e.At), Text: e.Text})
		}
	}
	c := New("Job "+name, last, bars, marks)
	c.precision = 100 * time.Millisecond
	c.cover(begin)
	c.cover(last)
	c.TellTimes()
	return c
}

func playedBar(begin time.Time, p *simulate.Pod) Bar {
	b := Bar{Name: p.Name, Line: p.Number, Created: begin.Add(p.Created), Outcome: p.Outcome, Text: p.Outcome}
	if p.Index != nil {
		b.Line = int(*p.Index)
	}
	if p.Started != nil {
		b.Started = begin.Add(*p.Started)
	}
	switch {
	case p.Ended != nil:
		b.Ended = begin.Add(*p.Ended)
	case p.Started != nil:
		b.Text = "running"
	default:
		b.Text = "pending"
	}
	if p.ExitCode != 0 {
		b.Text += fmt.Sprintf(", exit code %d", p.ExitCode)
	}
	if p.Restarts > 0 {
		b.Text += fmt.Sprintf(", restarts %d", p.Restarts)
	}
	for _, at := range p.Failures {
		b.Failures = append(b.Failures, begin.Add(at))
	}
	return b
}
