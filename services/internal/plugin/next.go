package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/engine/zone"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/cronruns"
	"jobpolicy.dev/services/internal/manifest"
)

const nextLong = `Says when the next runs of a CronJob come, which were missed, and what changes of the
clock do to them. Give the name of a CronJob in the cluster, a file with one, or a
schedule.

A schedule without a time zone is read in the zone of the controller: in UTC, unless
--zone says otherwise.`

const nextExample = `  kubectl jobpolicy next "30 2 * * *" --zone Europe/Berlin -n 5
  kubectl jobpolicy next -f cronjob.yaml --calendar
  kubectl jobpolicy next cronjob/backup`

const maxNext = 10_000

type nextCommand struct {
	cli.IO
	cluster  clusterFlags
	output   *cli.Output
	files    []string
	n        int
	zone     string
	from     time.Time
	calendar bool
}

func newNext(streams cli.IO) *cobra.Command {
	c := &nextCommand{IO: streams, n: 10}
	cmd := &cobra.Command{
		Use: `next cronjob/NAME | -f FILE | "SCHEDULE"`, Short: "List the next runs of a CronJob or schedule", Long: nextLong, Example: nextExample,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringArrayVarP(&c.files, "filename", "f", nil, "A `file` with a CronJob, in YAML or JSON; - is standard input. May be repeated, also for the JobPolicy that it names.")
	fs.VarP(cli.Value(&c.n, parseNumber), "number", "n", "How many `runs` to list. Default: 10. (A namespace is --namespace in this command.)")
	fs.StringVar(&c.zone, "zone", "", "The `zone` of a schedule that has none, such as Europe/Berlin. Default: UTC.")
	fs.Var(cli.Value(&c.from, parseTime), "from", "List runs after this `time`, such as 2026-03-28T00:00:00Z. Default: now.")
	fs.BoolVar(&c.calendar, "calendar", false, "Show the months of these runs as a calendar, with the number of runs of each day.")
	c.output = cli.AddOutput(cmd, "wide")
	c.cluster.AddFlags(fs, false)
	cmd.ValidArgsFunction = complete(&c.cluster, false, true)
	_ = cmd.RegisterFlagCompletionFunc("zone", cobra.FixedCompletions(zone.Names(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func parseTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, errors.New("expected a time such as 2026-03-28T00:00:00Z, or a day such as 2026-03-28")
}

func parseNumber(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxNext {
		return 0, fmt.Errorf("expected a number from 1 to %d; --namespace is for a namespace", maxNext)
	}
	return n, nil
}

func (c *nextCommand) run(ctx context.Context, args []string) error {
	if (len(args) == 1) == (len(c.files) > 0) || len(args) > 1 {
		return cli.Usagef("expected one of cronjob/NAME, -f FILE, or a schedule in quotes, such as \"30 2 * * *\"")
	}
	if _, err := cronruns.Read(cronruns.Plan{Schedule: "@daily", Zone: c.zone}); err != nil {
		return cli.UsageError{Err: err}
	}
	crons, err := c.crons(ctx, args)
	if err != nil {
		return err
	}
	for i, cron := range crons {
		c.output.Separate(c.Out, i)
		if err := c.show(cron); err != nil {
			return err
		}
	}
	return nil
}

// A namedCronJob is a CronJob that the arguments name.
type namedCronJob struct {
	*batchv1.CronJob
	// object is the CronJob in a file; nil: it is of a cluster, or made from a schedule.
	object *manifest.Object
	// unread says why the cluster's JobPolicy could not be read; empty: it was read, or there is none.
	unread string
}

// notRead says which options could not be read, and why. Without them the runs are told by the last valid
// ones, or as if it had none; explain says more of what is wrong with them.
func (n namedCronJob) notRead() []string {
	if n.unread != "" {
		return []string{n.unread}
	}
	_, problems := wire.PolicySpec(n.Annotations)
	return problems
}

// unreadable adds to an error about the schedule or time zone where they stand.
func (n namedCronJob) unreadable(err error) error {
	switch field := "spec.schedule"; {
	case n.object != nil:
		if strings.HasPrefix(err.Error(), "time zone") {
			field = "spec.timeZone"
		}
		return fmt.Errorf("%s:%d: %w", n.object.File, n.object.Line(field), err)
	case n.Name == "": // The schedule is an argument.
		return cli.UsageError{Err: err}
	}
	return err
}

// crons are the CronJobs that the arguments name. A schedule becomes a CronJob without a
// name.
func (c *nextCommand) crons(ctx context.Context, args []string) ([]namedCronJob, error) {
	if len(c.files) > 0 {
		return cronsOf(c.files, c.In)
	}
	if name, ok := resourceName(args[0], cronKinds...); ok {
		reader, err := c.cluster.Connect()
		if err != nil {
			return nil, err
		}
		cron, err := reader.CronJob(ctx, name)
		if err != nil {
			return nil, err
		}
		_, unread := reader.usePolicy(ctx, &cron.ObjectMeta)
		return []namedCronJob{{CronJob: cron, unread: unread}}, nil
	}
	return []namedCronJob{{CronJob: &batchv1.CronJob{Spec: batchv1.CronJobSpec{Schedule: args[0]}}}}, nil
}

// resourceName returns the NAME of KIND/NAME. Schedules have slashes, too, but not after
// one of the kinds.
func resourceName(arg string, kinds ...string) (name string, ok bool) {
	kind, name, _ := strings.Cut(arg, "/")
	for _, k := range kinds {
		if kind == k || strings.HasPrefix(kind, k+".") {
			return name, name != ""
		}
	}
	return "", false
}

func cronsOf(files []string, stdin io.Reader) ([]namedCronJob, error) {
	objects, err := manifest.ReadFiles(files, stdin)
	if err != nil {
		return nil, err
	}
	var crons []namedCronJob
	for _, o := range objects {
		if o.Incomplete && strings.EqualFold(strings.TrimSuffix(o.Kind, "List"), "CronJob") {
			p := o.Problems[0]
			return nil, fmt.Errorf("%s:%d: %s: %s", o.File, p.Line, p.Path, p.Text)
		}
		if o.CronJob != nil {
			crons = append(crons, namedCronJob{CronJob: o.CronJob, object: o})
		}
	}
	if len(crons) == 0 {
		return nil, fmt.Errorf("%s: expected a CronJob of batch/v1, found none", strings.Join(files, ", "))
	}
	return crons, nil
}

// nextReport is the output for programs.
type nextReport struct {
	CronJob  string           `json:"cronJob,omitempty"`
	Schedule string           `json:"schedule"`
	Zone     string           `json:"zone"`
	From     time.Time        `json:"from"`
	Suspend  bool             `json:"suspend,omitempty"`
	Missed   *cronruns.Missed `json:"missed,omitempty"`
	Next     []cronruns.Time  `json:"next"`
	// Unread says which options could not be read, and why. The times follow the last valid ones, or none.
	Unread []string `json:"unread,omitempty"`
}

func (c *nextCommand) show(named namedCronJob) error {
	cron := named.CronJob
	if named.object != nil && cron.Namespace == "" {
		cron = cron.DeepCopy()
		cron.Namespace = c.cluster.namespace()
	}
	plan := cronruns.PlanOf(cron, c.zone)
	reader, err := cronruns.Read(plan)
	if err != nil {
		return named.unreadable(err)
	}
	present := now()
	from := c.from
	if from.IsZero() {
		from = present
	}
	report := nextReport{
		CronJob: cron.Name, Schedule: plan.Schedule, Zone: plan.Clock(), From: from.UTC().Truncate(time.Second),
		Suspend: cronruns.Suspended(cron), Missed: cronruns.MissedOf(cron, reader, present),
		Unread: named.notRead(),
	}
	last := cronruns.LastRun(cron)
	if last.IsZero() || last.After(from) {
		last = from
	}
	reader = reader.From(last)
	report.Next = append([]cronruns.Time{}, reader.Next(from, c.n)...) // without runs, [] in JSON, not null
	if done, err := c.output.Machine(c.Out, report); done {
		return err
	}
	return c.print(cron, reader, report, present)
}

func (c *nextCommand) print(cron *batchv1.CronJob, reader *cronruns.Reader, report nextReport, present time.Time) error {
	w := c.Out
	title := fmt.Sprintf("%s in %s", report.Schedule, report.Zone)
	if cron.Name != "" {
		title = "CronJob " + cron.Name + ": " + title
	}
	fmt.Fprintln(w, cli.Paint(w, cli.Strong, title))
	if report.Suspend {
		until := "while spec.suspend is true"
		if cronruns.HandedOver(cron) {
			until = "until the annotation " + wire.CronJobSuspend + " is gone"
		}
		fmt.Fprintln(w, cli.Paint(w, cli.Notice, "suspended: none of these runs starts "+until))
	}
	if len(report.Unread) > 0 {
		with := "are without the options of the CronJob"
		if wire.LastValid(cron.Annotations) != nil {
			with = "follow the last valid options of the CronJob"
		}
		fmt.Fprintln(w, cli.Paint(w, cli.Notice, "not known: "+strings.Join(report.Unread, "; ")+"; these times "+with))
	}
	if m := report.Missed; m != nil {
		fmt.Fprintln(w, cli.Paint(w, cli.Notice, m.Text(cron, present)))
	}
	if policy, _ := wire.PolicySpec(cron.Annotations); cron.UID == "" && policy.GetCronJob().GetStartJitterSeconds() > 0 {
		fmt.Fprintln(w, cli.Paint(w, cli.Notice, fmt.Sprintf("start jitter: a run starts up to %ds later still; how much depends on the UID that the CronJob gets", policy.GetCronJob().GetStartJitterSeconds())))
	}
	fmt.Fprintln(w)
	printTimes(w, report.Next, report.From, c.output.Format == "wide")
	if runs := countRuns(report.Next); runs < c.n {
		fmt.Fprintf(w, "no more runs within five years\n")
	}
	if !c.calendar {
		return nil
	}
	return printCalendar(w, reader, report.Next)
}

func countRuns(times []cronruns.Time) int {
	n := 0
	for _, t := range times {
		if t.Change == "" {
			n++
		}
	}
	return n
}

// printCalendar prints the months of the runs. Each day shows the number of its runs.
func printCalendar(w io.Writer, reader *cronruns.Reader, times []cronruns.Time) error {
	if len(times) == 0 {
		return nil
	}
	first, last := times[0].At, times[len(times)-1].At
	// Months and days are only dates here, without a zone.
	for month, end := cronruns.Month(first), cronruns.Month(last); !month.After(end); month = month.AddDate(0, 1, 0) {
		fmt.Fprintf(w, "\n%s, runs of each day\n", month.Format("January 2006"))
		rows := [][]string{{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}}
		week := make([]string, 7)
		for day := month; day.Month() == month.Month(); day = day.AddDate(0, 0, 1) {
			cell := fmt.Sprintf("%2d", day.Day())
			begin, end := reader.StartOfDay(day.Date()), reader.StartOfDay(day.AddDate(0, 0, 1).Date())
			if n := reader.Count(begin.Add(-time.Second), end.Add(-time.Second)); n > 0 {
				cell += fmt.Sprintf(" ×%d", n)
			}
			column := (int(day.Weekday()) + 6) % 7
			week[column] = cell
			if column == 6 {
				rows, week = append(rows, week), make([]string, 7)
			}
		}
		if strings.Join(week, "") != "" {
			rows = append(rows, week)
		}
		if err := cli.Table(w, rows); err != nil {
			return err
		}
	}
	return nil
}
