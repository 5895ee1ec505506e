package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"jobpolicy.dev/engine/simulate"
	"jobpolicy.dev/engine/zone"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/explain"
	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/jobcheck"
	"jobpolicy.dev/services/internal/timeline"
)

const explainLong = `Says in plain English what goes on with a Job: what it waits for and until when, what
would change or end it, how many retries are left, and which pods cannot start and why.
Of a CronJob it says when the next run comes, which were skipped and why, what a run that
is due waits for, and which Jobs are active.

Everything is read with your own rights. The policy engine, which is built in, says what
the rules of the Job API demand next; so this works whichever controller acts on the Job
or CronJob. With --engine another one is asked.`

const explainExample = `  kubectl jobpolicy explain job/backup
  kubectl jobpolicy explain job/backup -n nightly -o wide
  kubectl jobpolicy explain cronjob/backup`

// maxEventPods is for how many pods that do not run the command reads events.
const maxEventPods = 5

type explainCommand struct {
	cli.IO
	cluster clusterFlags
	output  *cli.Output
	engine  engineFlags
	zone    string
}

func newExplain(streams cli.IO) *cobra.Command {
	c := &explainCommand{IO: streams}
	cmd := &cobra.Command{
		Use: "explain job/NAME | cronjob/NAME", Short: "Explain why a Job or CronJob is in its state, and what comes next", Long: explainLong, Example: explainExample,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) },
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&c.zone, "zone", "", "The `zone` in which the controller reads schedules that have none, such as Europe/Berlin. Default: UTC.")
	c.output = cli.AddOutput(cmd, "wide")
	c.engine.addFlags(cmd.Flags())
	c.cluster.AddFlags(cmd.Flags(), true)
	cmd.ValidArgsFunction = complete(&c.cluster, true, true)
	_ = cmd.RegisterFlagCompletionFunc("zone", cobra.FixedCompletions(zone.Names(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (c *explainCommand) run(ctx context.Context, args []string) error {
	cron, isCron := cronArgument(args)
	name, err := jobArgument(args)
	if err != nil && !isCron {
		return cli.UsageError{Err: fmt.Errorf("%w or cronjob/NAME", err)}
	}
	if err := c.engine.validate(); err != nil {
		return err
	}
	reader, err := c.cluster.Connect()
	if err != nil {
		return err
	}
	decide, err := c.engine.ask(ctx)
	if err != nil {
		return err
	}
	defer decide.close()
	if isCron {
		return c.cronJob(ctx, reader, cron, decide.cronJob)
	}
	facts, err := readFacts(ctx, reader, name)
	if err != nil {
		return err
	}
	report, err := explain.Explain(facts, decide.job)
	if err != nil {
		return jobcheck.InManifest(err)
	}
	if done, err := c.output.Machine(c.Out, report); done {
		return err
	}
	return printExplanation(c.Out, report, c.output.Format == "wide", facts.Now)
}

var errOneJob = cli.UsageError{Err: errors.New("expected one job/NAME")}

// jobArgument takes job/NAME, jobs/NAME, or NAME alone.
func jobArgument(args []string) (string, error) {
	if len(args) != 1 {
		return "", errOneJob
	}
	if name, ok := resourceName(args[0], "job", "jobs"); ok {
		return name, nil
	}
	if args[0] == "" || strings.Contains(args[0], "/") {
		return "", cli.Usagef("%q: expected job/NAME", args[0])
	}
	return args[0], nil
}

// now is the present time. A test of recorded Jobs sets it to the time of the recording.
var now = time.Now

// whereItWent adds to the error about a Job that is not there who may have deleted it, and where its end shows.
func whereItWent(err error, namespace, name string) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	return fmt.Errorf("%w. Finished Jobs are deleted by their time to live (ttlSecondsAfterFinished), or by the history limits of their CronJob. The events of one that is gone show its end for a while: kubectl get events -n %s --field-selector involvedObject.kind=Job,involvedObject.name=%s. Pods that have outlived it: kubectl get pods -n %s -l batch.kubernetes.io/job-name=%s", err, namespace, name, namespace, name)
}

// readFacts reads what explain needs. It fails if it cannot read the Job or its pods: without them
// the explanation would be wrong. If it cannot read events, the answer says so.
func readFacts(ctx context.Context, reader *clusterReader, name string) (explain.Facts, error) {
	f := explain.Facts{Now: now(), PodEvents: map[string][]corev1.Event{}}
	var err error
	if f.Job, err = reader.Job(ctx, name); err != nil {
		return f, whereItWent(err, reader.Namespace, name)
	}
	f.Job = timeline.Dated(f.Job)
	if f.Pods, err = reader.PodsOf(ctx, f.Job); err != nil {
		return f, err
	}
	f.Events, err = reader.EventsOf(ctx, f.Job.UID)
	if explain.TakesOptions(f) {
		from, unread := reader.usePolicy(ctx, &f.Job.ObjectMeta)
		if f.OptionsFrom = from; unread != "" {
			f.Unread = append(f.Unread, unread)
		}
		if explain.ReadsNodes(f.Job) {
			f.Unread = append(f.Unread, reader.readNodes(ctx, &f)...)
		}
	}
	if err != nil {
		f.Unread = append(f.Unread, err.Error())
		return f, nil
	}
	for i := range f.Pods {
		p := &f.Pods[i]
		if p.Status.Phase != corev1.PodPending || len(f.PodEvents) == maxEventPods {
			continue
		}
		if f.PodEvents[p.Name], err = reader.EventsOf(ctx, p.UID); err != nil {
			f.Unread = append(f.Unread, err.Error())
			return f, nil
		}
	}
	return f, nil
}

// readNodes reads the nodes of the pods that are being deleted. unread says of which nodes it failed.
func (r *clusterReader) readNodes(ctx context.Context, f *explain.Facts) (unread []string) {
	f.Nodes = map[string]jobpolicyv1.NodeState{}
	for i := range f.Pods {
		name := f.Pods[i].Spec.NodeName
		if _, known := f.Nodes[name]; known || name == "" || f.Pods[i].DeletionTimestamp == nil {
			continue
		}
		node := &corev1.Node{}
		switch err := r.core.Get().Resource("nodes").Name(name).Do(ctx).Into(node); {
		case err == nil:
			f.Nodes[name] = wire.NodeState(node)
		case apierrors.IsNotFound(err):
			f.Nodes[name] = wire.NodeState(nil)
		default:
			f.Nodes[name] = jobpolicyv1.NodeState_NODE_STATE_UNSPECIFIED
			unread = append(unread, fmt.Sprintf("read node %s: %v", name, err))
		}
	}
	return unread
}

func printExplanation(w io.Writer, r *explain.Report, wide bool, now time.Time) error {
	fmt.Fprintf(w, "%s  %s\n%s\n", cli.Paint(w, cli.Strong, "Job "+r.Namespace+"/"+r.Name), cli.Paint(w, stateStyle(r.State), string(r.State)), r.Headline)
	section(w, "How it failed", endLines(r.End))
	section(w, "Waits for", waitLines(r.Waits, now))
	section(w, "What comes next by itself", nextLines(r, now))
	section(w, "What would change it", r.Change)
	section(w, "What would end it, the nearest first", r.Ends)
	fmt.Fprintln(w)
	rows := [][]string{{"pods", countsText(r.Counts)}}
	if r.Retries != "" {
		rows = append(rows, []string{"retries", r.Retries})
	}
	if r.Options != nil {
		rows = append(rows, []string{"options", r.Options.String()})
	}
	if err := cli.Table(w, rows); err != nil {
		return err
	}
	section(w, "Pods that need attention", podLines(r.Pods))
	section(w, "Good to know", noteLines(r.Notes))
	section(w, "Not known", r.Unread)
	if !wide || len(r.Rules) == 0 {
		return nil
	}
	return printRules(w, r.Rules)
}

func printRules(w io.Writer, rules []explain.Rule) error {
	fmt.Fprintf(w, "\nRules that the engine asked, in order\n")
	var rows [][]string
	for _, rule := range rules {
		mark := ""
		if rule.Decides {
			mark = "decides"
		}
		rows = append(rows, []string{"  " + rule.Name, mark, rule.Answer})
	}
	return cli.Table(w, rows)
}

func stateStyle(s explain.State) cli.Style {
	switch {
	case s == explain.Complete || s == explain.Running || s == explain.Scheduled || s == explain.Completing:
		return cli.Good
	case slices.Contains([]explain.State{
		explain.Failed, explain.Failing, explain.Blocked, explain.Stuck, explain.Unmanaged, explain.Invalid, explain.Missed, explain.Late,
	}, s):
		return cli.Bad
	}
	return cli.Notice
}

func section(w io.Writer, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", cli.Paint(w, cli.Strong, title))
	for _, line := range lines {
		fmt.Fprintf(w, "  - %s\n", strings.ReplaceAll(line, "\n", "\n    "))
	}
}

func endLines(end *explain.End) []string {
	if end == nil {
		return nil
	}
	lines := []string{end.Class + ": " + end.Sentence}
	if end.PolicyRule != nil {
		lines = append(lines, strings.TrimSuffix(fmt.Sprintf("rule %d of the pod failure policy matched: %s", *end.PolicyRule, end.PolicyRuleName), ": "))
	}
	if end.Tries > 0 {
		lines = append(lines, fmt.Sprintf("failures that count: %d", end.Tries))
	}
	for i := range end.Failures {
		lines = append(lines, failureLine(&end.Failures[i]))
	}
	return lines
}

// failureLine is one of the pods that failed last.
func failureLine(f *explain.EndFailure) string {
	line := "pod " + f.Pod
	if f.Index != nil {
		line += fmt.Sprintf(", index %d", *f.Index)
	}
	if f.Container != "" {
		line += ", container " + f.Container
	}
	switch {
	case f.Signal != 0:
		line += fmt.Sprintf(", signal %d", f.Signal)
	case f.ExitCode != 0:
		line += fmt.Sprintf(", exit code %d", f.ExitCode)
	}
	if f.Reason != "" {
		line += ", " + f.Reason
	}
	if f.TerminationMessage != "" {
		line += ": " + f.TerminationMessage
	}
	return line
}

func waitLines(waits []explain.Wait, now time.Time) []string {
	var lines []string
	for _, wait := range waits {
		line := wait.For
		if wait.Until != nil {
			line += fmt.Sprintf("; until %s (in %s)", wait.Until.UTC().Truncate(time.Second).Format(time.RFC3339),
				simulate.Clock(wait.Until.Sub(now).Round(time.Second)))
		}
		lines = append(lines, line)
	}
	return lines
}

// nextLines says what the controller does next, and when.
func nextLines(r *explain.Report, now time.Time) []string {
	n := r.Next
	switch finished := r.State == explain.Complete || r.State == explain.Failed; {
	case n == nil && r.State == explain.Deleting:
		return []string{"nothing, until its finalizers are removed; then it is gone"}
	case n == nil && finished:
		return []string{"nothing: it stays as it is until it is deleted"}
	case n == nil:
		return []string{"nothing, until a pod changes or somebody changes the Job"}
	}
	at := "now"
	if n.At != nil {
		at = fmt.Sprintf("%s (in %s)", n.At.UTC().Truncate(time.Second).Format(time.RFC3339), simulate.Clock(n.At.Sub(now).Round(time.Second)))
	}
	switch {
	case n.Refused && n.At != nil:
		at += " or later, because the API server refuses other writes"
	case n.Refused:
		at = "when the API server no longer refuses it"
	}
	if n.OrLater {
		at += " or up to 10m later"
	}
	if n.OrEarlier {
		at += " or earlier"
	}
	var lines []string
	for _, step := range n.Steps {
		lines = append(lines, at+": "+step.Text)
	}
	return lines
}

func countsText(c explain.Counts) string {
	text := fmt.Sprintf("active %d", c.Active)
	if c.Wanted != nil {
		text += fmt.Sprintf(" of %d wanted", *c.Wanted)
	}
	text += fmt.Sprintf(", ready %d, terminating %d, succeeded %d", c.Ready, c.Terminating, c.Succeeded)
	if c.Completions != nil {
		text += fmt.Sprintf(" of %d", *c.Completions)
	}
	return text + fmt.Sprintf(", failed %d", c.Failed)
}

func podLines(pods []explain.PodProblem) []string {
	var lines []string
	for _, p := range pods {
		line := p.Pod + ": " + p.Why
		if p.Change != "" {
			line += "\n" + p.Change
		}
		lines = append(lines, line)
	}
	return lines
}
