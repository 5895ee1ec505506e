package demo

import (
	"fmt"
	"io"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
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
		rows = append(rows, rowOf(ex, *o.historyOf(ex.job.Name), o.said[ex.job.Name].summary))
	}
	return rows
}

func rowOf(ex *example, past history, said string) row {
	r := row{name: ex.name, mode: ex.mode(ex.job), condition: "-", reason: said}
	if past.job == nil {
		r.reason = ex.waitsFor()
		return r
	}
	if past.gone {
		r.condition, r.ended, r.reason = "(deleted)", true, ""
		return r
	}
	s := past.job.Status
	r.mode = ex.mode(past.job)
	r.active, r.ready, r.succeeded, r.failed = s.Active, ptr.Deref(s.Ready, 0), s.Succeeded, s.Failed
	r.condition = latestCondition(past.job)
	r.ended = finished(past.job) && past.job.Spec.TTLSecondsAfterFinished == nil
	if by := ex.job.Spec.ManagedBy; by != nil {
		r.ended, r.reason = true, "(not asked: managed by "+*by+")"
	}
	return r
}

// waitsFor says why the Job is not there yet.
func (ex *example) waitsFor() string {
	switch {
	case ex.cron != nil:
		return "(comes when its CronJob is made to start it)"
	case ex.adopts != "":
		return "(comes when " + ex.adopts + " is gone)"
	}
	return "(comes when others have ended)"
}

// mode describes the kind of Job, and for a run of a CronJob when that is due.
func (ex *example) mode(job *batchv1.Job) string {
	if ex.cron != nil {
		return "cron " + ex.cron.Spec.Schedule
	}
	return mode(job)
}

// mode describes the kind of Job: its completions and parallelism.
func mode(job *batchv1.Job) string {
	spec := job.Spec
	parallelism := int32(1)
	if spec.Parallelism != nil {
		parallelism = *spec.Parallelism
	}
	switch {
	case spec.Completions == nil && spec.Parallelism != nil:
		return fmt.Sprintf("work queue by %d", parallelism)
	case spec.Completions == nil, *spec.Completions == 1 && parallelism == 1:
		return "single"
	case spec.CompletionMode != nil && *spec.CompletionMode == batchv1.IndexedCompletion:
		return fmt.Sprintf("Indexed %d by %d", *spec.Completions, parallelism)
	}
	return fmt.Sprintf("%d by %d", *spec.Completions, parallelism)
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
	return len(rows) > 0 && !slices.ContainsFunc(rows, func(r row) bool { return !r.ended })
}

// A table shows rows: redrawn in place on a terminal, and elsewhere one line
// for each change of a Job.
type table struct {
	w io.Writer
	// size is the terminal's, asked anew for each drawing: a line that wraps,
	// and a table that is higher, would upset the count of lines. nil: not a
	// terminal.
	size  func() (columns, lines int)
	drawn int
	last  map[string]string
	// notes are lines to be printed above the table.
	notes []string
}

func newTable(w io.Writer, size func() (columns, lines int)) *table {
	t := &table{w: w, size: size, last: map[string]string{}}
	if size == nil {
		fmt.Fprintln(w, header(roomForMode))
	}
	return t
}

// note has a line printed with the next drawing, which stays.
func (t *table) note(line string) { t.notes = append(t.notes, line) }

func (t *table) draw(rows []row) {
	notes := t.notes
	t.notes = nil
	if t.size == nil {
		for _, note := range notes {
			fmt.Fprintln(t.w, note)
		}
		t.drawChanges(rows)
		return
	}
	width, height := t.size()
	lines := append([]string{header(width)}, fit(rows, width, height-2)...)
	var b strings.Builder
	if t.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", t.drawn)
	}
	for _, line := range append(notes, lines...) {
		fmt.Fprintf(&b, "\x1b[2K%s\n", clip(line, width))
	}
	b.WriteString("\x1b[J")
	t.drawn = len(lines)
	io.WriteString(t.w, b.String())
}

// fit returns a line for each row if there is room for all of them; else as
// many as there is room for of those whose Jobs have not ended, and a line that
// says how many are not shown.
func fit(rows []row, width, room int) []string {
	shown := rows
	if len(rows) > room {
		shown = slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.ended })
		shown = shown[:min(len(shown), max(room-1, 0))]
	}
	lines := make([]string, 0, len(shown)+1)
	for _, r := range shown {
		lines = append(lines, r.line(width))
	}
	if hidden := len(rows) - len(shown); hidden > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more", hidden))
	}
	return lines
}

// drawChanges prints the rows whose numbers or condition changed.
func (t *table) drawChanges(rows []row) {
	for _, r := range rows {
		state := r.counts(roomForMode)
		if t.last[r.name] == state {
			continue
		}
		t.last[r.name] = state
		fmt.Fprintln(t.w, r.line(roomForMode))
	}
}

const (
	nameFormat   = "%-18s "
	modeFormat   = "%-16s "
	countsFormat = "%6v %5v %9v %6v  %-18s "
	reasonWidth  = 90
	// roomForMode is how wide a terminal must be for the column MODE. On a narrower one
	// the column is left out, so that there is room for the engine's reason.
	roomForMode = 120
)

func header(width int) string {
	return columns(width, "EXAMPLE", "MODE", "ACTIVE", "READY", "SUCCEEDED", "FAILED", "CONDITION") + "THE ENGINE SAYS"
}

func (r row) counts(width int) string {
	return columns(width, r.name, r.mode, r.active, r.ready, r.succeeded, r.failed, r.condition)
}

func (r row) line(width int) string {
	return r.counts(width) + clip(r.reason, reasonWidth)
}

// columns aligns a name, a mode and the rest of the line.
func columns(width int, name, mode string, counts ...any) string {
	line := fmt.Sprintf(nameFormat, name)
	if width >= roomForMode {
		line += fmt.Sprintf(modeFormat, mode)
	}
	return line + fmt.Sprintf(countsFormat, counts...)
}

// clip shortens text to width characters.
func clip(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return string(runes[:max(width-1, 0)]) + "…"
}
