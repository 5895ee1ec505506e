// Package timeline draws the life of a Job: a bar for each pod, and a mark for each
// thing that happened to the Job. The command timeline, the live page and the playground show the
// same chart of what a cluster (Of), or a play (Played), says: as text, as a page without scripts, or
// by its positions (Picture), from which a page draws it.
//
// Weighed against go-echarts v2, which draws no text, and needs scripts in the page.
package timeline

import (
	"cmp"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"jobpolicy.dev/engine/simulate"
	"jobpolicy.dev/services/explain"
)

// A Chart is the life of a Job, to be drawn. Programs can read it as JSON.
type Chart struct {
	Title string    `json:"title"`
	Begin time.Time `json:"begin"`
	End   time.Time `json:"end"`
	Bars  []Bar     `json:"pods"`
	Marks []Mark    `json:"events"`
	// Options are those that the Job has by a JobPolicy. Nil: none.
	Options *explain.Options `json:"options,omitempty"`

	// precision is how precise the times in texts are.
	precision time.Duration
}

// A Bar is the life of one pod.
type Bar struct {
	Name string `json:"name"`
	// Line is the pod's index, or 0 if the Job runs one pod at a time. The bars of a line
	// stand together, and those after a failed one are retries. Below 0: the pod has no
	// line.
	Line int `json:"line"`
	// Created, Started and Ended are in order; Started is zero for a pod that never
	// ran, Ended for one that has not ended.
	Created time.Time `json:"created"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	// Outcome is succeeded, failed, or empty for a pod that has not ended. In a play it may be evicted
	// or deleted, too.
	Outcome string `json:"outcome,omitempty"`
	// Failures are when containers failed that were restarted in the pod. Only a play knows them.
	Failures []time.Time `json:"-"`
	// Text is what is written beside the bar.
	Text string `json:"text"`
}

// A Mark is something that happened to the Job.
type Mark struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// New puts a chart in order: the bars by line, creation and name, the marks by time.
func New(title string, now time.Time, bars []Bar, marks []Mark) Chart {
	c := Chart{Title: title, Bars: append([]Bar{}, bars...), Marks: marks, precision: time.Second} // without pods, [] in JSON, not null
	slices.SortStableFunc(c.Bars, func(a, b Bar) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	tellRetries(c.Bars)
	slices.SortStableFunc(c.Marks, func(a, b Mark) int { return a.At.Compare(b.At) })
	open := false
	for _, b := range c.Bars {
		c.cover(b.Created)
		c.cover(b.Ended)
		open = open || b.Ended.IsZero()
	}
	for _, m := range c.Marks {
		c.cover(m.At)
	}
	if open || c.End.IsZero() {
		c.cover(now)
	}
	if !c.End.After(c.Begin) {
		c.End = c.Begin.Add(time.Second)
	}
	return c
}

// tellRetries adds to the text of each pod after a failed one how long it was delayed.
func tellRetries(bars []Bar) {
	for i := range bars {
		b := &bars[i]
		if i == 0 || b.Line < 0 {
			continue
		}
		before := bars[i-1]
		if before.Line != b.Line || before.Outcome != "failed" {
			continue
		}
		if delay := b.Created.Sub(before.Ended); delay >= 0 {
			b.Text += fmt.Sprintf(" (retry, created %s after the failure)", simulate.Clock(delay.Round(time.Second)))
		}
	}
}

// Now adds a last mark for the present.
func (c *Chart) Now(now time.Time, text string) {
	c.cover(now)
	c.Marks = append(c.Marks, Mark{now, "now: " + text})
}

// TellTimes adds to the text of each pod when it was created, started and ended.
func (c *Chart) TellTimes() {
	for i := range c.Bars {
		b := &c.Bars[i]
		b.Text += "; created " + c.clock(b.Created)
		if !b.Started.IsZero() {
			b.Text += ", started " + c.clock(b.Started)
		}
		if !b.Ended.IsZero() {
			b.Text += ", ended " + c.clock(b.Ended)
		}
	}
}

// cover makes the chart as long as it needs to be.
func (c *Chart) cover(t time.Time) {
	switch {
	case t.IsZero():
	case c.Begin.IsZero():
		c.Begin, c.End = t, t
	case t.Before(c.Begin):
		c.Begin = t
	case t.After(c.End):
		c.End = t
	}
}

// share is the position of a time in the chart, from 0 to 1.
func (c *Chart) share(t time.Time) float64 {
	if t.IsZero() {
		return 1
	}
	return min(max(float64(t.Sub(c.Begin))/float64(c.End.Sub(c.Begin)), 0), 1)
}

// clock is how long after the beginning a time is; ? for an event without a time.
func (c *Chart) clock(t time.Time) string {
	if t.IsZero() {
		return "?"
	}
	return simulate.Clock(t.Sub(c.Begin).Round(c.precision))
}

// barColumns is how wide the bars are in text.
const barColumns = 48

// WriteText draws the chart with characters: . for a pod that does not run yet, =
// for one that does, and at the end + (succeeded), x (failed) or > (not ended).
func (c *Chart) WriteText(w io.Writer) error {
	width := 0
	for _, b := range c.Bars {
		width = max(width, len(b.Name))
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s\nfrom %s on, for %s\n", c.Title, c.Begin.UTC().Format(time.RFC3339), simulate.Clock(c.End.Sub(c.Begin).Round(time.Second)))
	if c.Options != nil {
		fmt.Fprintf(&out, "options of %s\n", c.Options)
	}
	out.WriteString("\n")
	for _, b := range c.Bars {
		fmt.Fprintf(&out, "%-*s  |%s|  %s\n", width, b.Name, c.row(b), b.Text)
	}
	if len(c.Marks) > 0 {
		out.WriteString("\n")
	}
	for _, m := range c.Marks {
		fmt.Fprintf(&out, "%10s  %s\n", c.clock(m.At), m.Text)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (c *Chart) row(b Bar) string {
	row := []byte(strings.Repeat(" ", barColumns))
	column := func(t time.Time) int { return min(int(c.share(t)*barColumns), barColumns-1) }
	started := b.Started
	if started.IsZero() {
		started = b.Ended
	}
	for i := column(b.Created); i <= column(b.Ended); i++ {
		row[i] = '='
		if i < column(started) || b.Started.IsZero() {
			row[i] = '.'
		}
	}
	row[column(b.Ended)] = map[string]byte{"succeeded": '+', "failed": 'x'}[b.Outcome]
	if b.Outcome == "" {
		row[column(b.Ended)] = '>'
	}
	return string(row)
}

// The page is one file without scripts; colours follow the reader's light or dark
// setting.
const page = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{.Title}}</title>
<style>
:root { color-scheme: light dark; --wait: #b0b0b0; --run: #4a90d9; --succeeded: #2e9e5b; --failed: #d64545; }
body { font: 14px system-ui, sans-serif; margin: 2em; }
table { border-collapse: collapse; width: 100%; }
td, th { padding: 3px 8px; text-align: left; white-space: nowrap; }
td.bar { width: 60%; } td.bar div { position: relative; height: 14px; }
i { position: absolute; top: 0; height: 14px; border-radius: 2px; min-width: 3px; }
i.wait { background: var(--wait); } i.run { background: var(--run); }
i.succeeded { background: var(--succeeded); } i.failed { background: var(--failed); }
</style></head><body>
<h1>{{.Title}}</h1><p>From {{.From}} on, for {{.Took}}. Grey: not running yet; blue: running; green: succeeded; red: failed.</p>
{{with .Options}}<p>Options of {{.}}</p>
{{end -}}
<table><thead><tr><th scope="col">Pod</th><th scope="col">Life</th><th scope="col">What became of it</th></tr></thead><tbody>
{{range .Bars}}<tr><th scope="row">{{.Name}}</th><td class="bar"><div>{{range .Parts}}<i class="{{.Class}}" style="left:{{.Left}}%;width:{{.Width}}%"></i>{{end}}</div></td><td>{{.Text}}</td></tr>
{{end}}</tbody></table>
<h2>The Job</h2><table><thead><tr><th scope="col">After</th><th scope="col">What happened</th></tr></thead><tbody>
{{range .Marks}}<tr><td>{{.At}}</td><td>{{.Text}}</td></tr>
{{end}}</tbody></table></body></html>
`

// A Picture is a chart with the positions of everything that is drawn.
type Picture struct {
	Title string `json:"title"`
	From  string `json:"from"`
	Took  string `json:"took"`
	// Options are those of the Chart in one line.
	Options string `json:"options,omitempty"`
	// Seconds is how long the chart is.
	Seconds float64       `json:"seconds"`
	Bars    []PictureBar  `json:"bars"`
	Marks   []PictureMark `json:"marks"`
}

// A PictureBar is the bar of a pod: its parts and its text.
type PictureBar struct {
	Name  string        `json:"name"`
	Text  string        `json:"text"`
	Parts []PicturePart `json:"parts"`
	// Line is that of the Bar. Failures are percentages.
	Line     int      `json:"line"`
	Failures []string `json:"failures,omitempty"`
}

// A PicturePart is a piece of a bar. Class is wait, run, or the Outcome of the Bar; Left and
// Width are percentages.
type PicturePart struct {
	Class string `json:"class"`
	Left  string `json:"left"`
	Width string `json:"width"`
}

// A PictureMark is something that happened to the Job, and how long after the beginning. Left is a
// percentage.
type PictureMark struct {
	At   string `json:"at"`
	Text string `json:"text"`
	Left string `json:"left"`
}

// WriteHTML draws the chart as one page without scripts. It reads the template only here, so that the
// playground, which has only pictures, is built without html/template.
func (c *Chart) WriteHTML(w io.Writer) error {
	return template.Must(template.New("page").Parse(page)).Execute(w, c.Picture())
}

// Picture computes the positions.
func (c *Chart) Picture() Picture {
	data := Picture{
		Title: c.Title, From: c.Begin.UTC().Format(time.RFC3339), Took: c.clock(c.End), Seconds: c.End.Sub(c.Begin).Seconds(),
	}
	if c.Options != nil {
		data.Options = c.Options.String()
	}
	for _, b := range c.Bars {
		running := b.Outcome
		if running == "" {
			running = "run"
		}
		bar := PictureBar{Name: b.Name, Text: b.Text, Line: b.Line}
		if b.Started.IsZero() {
			bar.Parts = []PicturePart{c.part("wait", b.Created, b.Ended)}
		} else {
			bar.Parts = []PicturePart{c.part("wait", b.Created, b.Started), c.part(running, b.Started, b.Ended)}
		}
		for _, at := range b.Failures {
			bar.Failures = append(bar.Failures, percent(c.share(at)))
		}
		data.Bars = append(data.Bars, bar)
	}
	for _, m := range c.Marks {
		data.Marks = append(data.Marks, PictureMark{c.clock(m.At), m.Text, percent(c.share(m.At))})
	}
	return data
}

func (c *Chart) part(class string, from, to time.Time) PicturePart {
	left := c.share(from)
	return PicturePart{class, percent(left), percent(c.share(to) - left)}
}

func percent(share float64) string { return fmt.Sprintf("%.2f", 100*share) }
