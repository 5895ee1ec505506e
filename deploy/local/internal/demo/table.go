package demo

import (
	"fmt"
	"io"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
)

// A row is one line of the table.
type row struct {
	name, mode                       string
	active, ready, succeeded, failed int32
	condition, reason                string
	ended                            bool
}

// rows returns the present state of all Jobs.
func (o *observer) rows() []row {
	o.mu.Lock()
	defer o.mu.Unlock()
	rows := make([]row, 0, len(o.examples))
	for _, ex := range o.examples {
		r := row{name: ex.job.Name, mode: mode(ex.job), reason: o.reasons[ex.job.Name]}
		if job := o.jobs[ex.job.Name]; job != nil {
			r.active, r.succeeded, r.failed = job.Status.Active, job.Status.Succeeded, job.Status.Failed
			if job.Status.Ready != nil {
				r.ready = *job.Status.Ready
			}
			r.condition = latestCondition(job)
			r.ended = conditionTrue(job, batchv1.JobComplete) || conditionTrue(job, batchv1.JobFailed)
		}
		rows = append(rows, r)
	}
	return rows
}

// mode describes the kind of Job: its completions and parallelism.
func mode(job *batchv1.Job) string {
	parallelism := int32(1)
	if job.Spec.Parallelism != nil {
		parallelism = *job.Spec.Parallelism
	}
	switch {
	case job.Spec.Completions == nil && job.Spec.Parallelism != nil:
		return fmt.Sprintf("work queue by %d", parallelism)
	case job.Spec.Completions == nil:
		return "single"
	case job.Spec.CompletionMode != nil && *job.Spec.CompletionMode == batchv1.IndexedCompletion:
		return fmt.Sprintf("Indexed %d by %d", *job.Spec.Completions, parallelism)
	}
	return fmt.Sprintf("%d by %d", *job.Spec.Completions, parallelism)
}

// latestCondition is the condition that says most about where the Job stands.
func latestCondition(job *batchv1.Job) string {
	order := []batchv1.JobConditionType{
		batchv1.JobComplete, batchv1.JobFailed, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet, batchv1.JobSuspended,
	}
	for _, conditionType := range order {
		if conditionTrue(job, conditionType) {
			return string(conditionType)
		}
	}
	return "-"
}

func allEnded(rows []row) bool {
	for _, r := range rows {
		if !r.ended {
			return false
		}
	}
	return len(rows) > 0
}

// A table shows rows: redrawn in place on a terminal, and elsewhere one line
// for each change of a Job.
type table struct {
	w io.Writer
	// width is the terminal's, in columns, asked anew for each drawing: a line
	// that wraps would upset the count of lines. nil: not a terminal.
	width func() int
	drawn int
	last  map[string]string
}

func newTable(w io.Writer, width func() int) *table {
	t := &table{w: w, width: width, last: map[string]string{}}
	if width == nil {
		fmt.Fprintln(w, header())
	}
	return t
}

func (t *table) draw(rows []row) {
	if t.width == nil {
		t.drawChanges(rows)
		return
	}
	width := t.width()
	var b strings.Builder
	if t.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", t.drawn)
	}
	lines := append([]string{header()}, make([]string, 0, len(rows))...)
	for _, r := range rows {
		lines = append(lines, r.line())
	}
	for _, line := range lines {
		fmt.Fprintf(&b, "\x1b[2K%s\n", clip(line, width))
	}
	t.drawn = len(lines)
	io.WriteString(t.w, b.String())
}

// drawChanges prints the rows whose numbers or condition changed.
func (t *table) drawChanges(rows []row) {
	for _, r := range rows {
		state := r.counts()
		if t.last[r.name] == state {
			continue
		}
		t.last[r.name] = state
		fmt.Fprintln(t.w, r.line())
	}
}

const (
	countsFormat = "%-17s %-15s %6d %6d %10d %7d  %-19s"
	headerFormat = "%-17s %-15s %6s %6s %10s %7s  %-19s %s"
	reasonWidth  = 90
)

func header() string {
	return fmt.Sprintf(headerFormat, "JOB", "MODE", "ACTIVE", "READY", "SUCCEEDED", "FAILED", "CONDITION", "THE ENGINE SAYS")
}

func (r row) counts() string {
	return fmt.Sprintf(countsFormat, r.name, r.mode, r.active, r.ready, r.succeeded, r.failed, r.condition)
}

func (r row) line() string {
	return r.counts() + " " + clip(r.reason, reasonWidth)
}

// clip shortens text to width characters.
func clip(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return string(runes[:max(width-1, 0)]) + "…"
}

// wrap breaks text into lines of width characters.
func wrap(text string, width int) string {
	var b strings.Builder
	for i, r := range []rune(strings.TrimSpace(text)) {
		if i > 0 && i%width == 0 {
			b.WriteByte('\n')
		}
		b.WriteRune(r)
	}
	return b.String()
}
