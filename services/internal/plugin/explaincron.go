package plugin

import (
	"context"
	"fmt"
	"io"
	"time"

	"jobpolicy.dev/engine/simulate"
	"jobpolicy.dev/services/explain"
	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/cronruns"
	"jobpolicy.dev/services/internal/jobcheck"
)

// cronArgument takes cronjob/NAME.
func cronArgument(args []string) (name string, ok bool) {
	if len(args) != 1 {
		return "", false
	}
	return resourceName(args[0], cronKinds...)
}

// cronKinds are kubectl's names for the kind.
var cronKinds = []string{"cronjob", "cronjobs", "cj"}

func (c *explainCommand) cronJob(ctx context.Context, reader *clusterReader, name string, decide explain.DecideCronJob) error {
	facts, err := readCronFacts(ctx, reader, name)
	if err != nil {
		return err
	}
	facts.Zone = c.zone
	report, err := explain.ExplainCronJob(facts, decide)
	if err != nil {
		return jobcheck.InManifest(err)
	}
	if done, err := c.output.Machine(c.Out, report); done {
		return err
	}
	return printCronJob(c.Out, report, c.output.Format == "wide", facts.Now)
}

// readCronFacts reads what explain needs. It reads the CronJob before the Jobs, so an
// active Job that is not in the list no longer exists.
func readCronFacts(ctx context.Context, reader *clusterReader, name string) (explain.CronFacts, error) {
	var f explain.CronFacts
	var err error
	if f.CronJob, err = reader.CronJob(ctx, name); err != nil {
		return f, err
	}
	from, unread := reader.usePolicy(ctx, &f.CronJob.ObjectMeta)
	if f.OptionsFrom = from; unread != "" {
		f.Unread = append(f.Unread, unread)
	}
	if explain.GroupOf(f.CronJob) != nil {
		f.Others, err = reader.CronJobs(ctx, reader.Namespace)
		f.Unread = append(f.Unread, reader.usePolicies(ctx, f.Others)...)
		if err != nil {
			f.Unread = append(f.Unread, fmt.Sprintf("the other CronJobs of its group: %v", err))
		}
	}
	if f.Jobs, err = reader.Jobs(ctx, reader.Namespace); err != nil {
		return f, err
	}
	if f.Events, err = reader.EventsOf(ctx, f.CronJob.UID); err != nil {
		f.Unread = append(f.Unread, err.Error())
	}
	f.Now = now()
	return f, nil
}

func printCronJob(w io.Writer, r *explain.CronReport, wide bool, now time.Time) error {
	fmt.Fprintf(w, "%s  %s\n%s\n", cli.Paint(w, cli.Strong, "CronJob "+r.Namespace+"/"+r.Name), cli.Paint(w, stateStyle(r.State), string(r.State)), r.Headline)
	section(w, "Waits for", waitLines(r.Waits, now))
	section(w, "What would change it", r.Change)
	if len(r.Next) > 0 {
		fmt.Fprintf(w, "\n%s\n", cli.Paint(w, cli.Strong, nextTitle(r.State)))
		printTimes(w, r.Next, now, false)
	}
	section(w, "Not started", skippedLines(r))
	section(w, "Active", activeLines(r.Active, now))
	section(w, "Created by hand, and active beside the runs", activeLines(r.ByHand, now))
	section(w, "Ended, the newest first", endedLines(r.Ended, now))
	fmt.Fprintln(w)
	var rows [][]string
	for _, s := range r.Settings {
		rows = append(rows, []string{s.Name, s.Value, s.Meaning})
	}
	if err := cli.Table(w, rows); err != nil {
		return err
	}
	section(w, "Warnings", r.Warnings)
	section(w, "Good to know", noteLines(r.Notes))
	section(w, "Not known", r.Unread)
	if !wide {
		return nil
	}
	section(w, "Why each Job is kept", noteLines(r.Kept))
	return printRules(w, r.Rules)
}

func nextTitle(s explain.State) string {
	if s == explain.Suspended {
		return "Next runs, if it is resumed"
	}
	return "Next runs"
}

// printTimes lists runs, and changes of the clock between them; wide adds the time in UTC.
func printTimes(w io.Writer, times []cronruns.Time, now time.Time, wide bool) {
	for _, t := range times {
		if t.Change != "" {
			fmt.Fprintln(w, cli.Paint(w, cli.Notice, "    -- "+t.Change))
			continue
		}
		line := t.At.Format("Mon 2006-01-02 15:04:05 MST") + "  in " + simulate.Clock(t.At.Sub(now).Round(time.Second))
		if wide {
			line += "  " + t.At.UTC().Format(time.RFC3339)
		}
		if t.Starts != nil {
			line += "  " + startText(t)
		}
		if t.Note != "" {
			line += "  " + cli.Paint(w, cli.Notice, t.Note)
		}
		fmt.Fprintln(w, line)
	}
}

// startText says when a run starts that starts later than it is due.
func startText(t cronruns.Time) string {
	layout := "15:04:05"
	if t.Starts.Format(time.DateOnly) != t.At.Format(time.DateOnly) {
		layout = "Mon 2006-01-02 15:04:05 MST"
	}
	return fmt.Sprintf("starts %s later, at %s", simulate.Clock(t.Starts.Sub(t.At)), t.Starts.Format(layout))
}

func skippedLines(r *explain.CronReport) []string {
	var lines []string
	for _, s := range r.Skipped {
		lines = append(lines, s.At.UTC().Format(time.RFC3339)+": "+s.Why)
	}
	if more := r.SkippedTotal - int64(len(r.Skipped)); more > 0 {
		lines = append(lines, fmt.Sprintf("earlier ones: %d", more))
	}
	return lines
}

func activeLines(runs []explain.ActiveRun, now time.Time) []string {
	var lines []string
	for _, run := range runs {
		line := run.Job
		if run.Started != nil {
			line += ", started " + sinceText(*run.Started, now)
		}
		if run.Scheduled != nil {
			line += ", the run of " + run.Scheduled.UTC().Format(time.RFC3339)
		}
		lines = append(lines, line+": "+run.State)
	}
	return lines
}

func endedLines(runs []explain.EndedRun, now time.Time) []string {
	var lines []string
	for _, run := range runs {
		byHand := ""
		if run.ByHand {
			byHand = ", created by hand"
		}
		lines = append(lines, fmt.Sprintf("%s%s: %s (%s), %s", run.Job, byHand, run.Outcome, run.Reason, sinceText(run.Ended, now)))
	}
	return lines
}

func sinceText(t, now time.Time) string {
	return simulate.Clock(now.Sub(t).Round(time.Second)) + " ago"
}

func noteLines(notes []explain.Note) []string {
	var lines []string
	for _, n := range notes {
		lines = append(lines, n.Topic+": "+n.Text)
	}
	return lines
}
