package plugin

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/services/explain"
	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/jobcheck"
	"jobpolicy.dev/services/internal/timeline"
)

const timelineLong = `Draws the life of a Job: a bar for each pod that is still there, and what happened to the
Job, from its conditions and events. Pods of one index stand together; a retry says how
long it was delayed. The last line says what the Job waits for now, as explain does.

In a bar, . is a pod that does not run yet and = one that does; it ends with + (succeeded),
x (failed) or > (not ended).`

type timelineCommand struct {
	cli.IO
	cluster clusterFlags
	output  *cli.Output
	html    string
}

func newTimeline(streams cli.IO) *cobra.Command {
	c := &timelineCommand{IO: streams}
	cmd := &cobra.Command{
		Use: "timeline job/NAME", Short: "Draw the life of a Job", Long: timelineLong,
		Example: "  kubectl jobpolicy timeline job/backup\n  kubectl jobpolicy timeline job/backup --html life.html",
		RunE:    func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) },
	}
	cmd.Flags().StringVar(&c.html, "html", "", "Write a page to this `file`, too.")
	c.output = cli.AddOutput(cmd, "wide")
	c.cluster.AddFlags(cmd.Flags(), true)
	cmd.ValidArgsFunction = complete(&c.cluster, true, false)
	return cmd
}

func (c *timelineCommand) run(ctx context.Context, args []string) error {
	name, err := jobArgument(args)
	if err != nil {
		return err
	}
	reader, err := c.cluster.Connect()
	if err != nil {
		return err
	}
	facts, err := readFacts(ctx, reader, name)
	if err != nil {
		return err
	}
	chart := timeline.Of(facts)
	if wire.FinishedCondition(facts.Job) == nil {
		report, err := explain.Explain(facts, engine.DecideJob)
		if err != nil {
			return jobcheck.InManifest(err)
		}
		chart.Now(facts.Now, string(report.State)+": "+report.Headline)
	}
	if err := c.print(&chart); err != nil {
		return err
	}
	for _, text := range facts.Unread {
		fmt.Fprintln(c.Err, "not known:", text)
	}
	if c.html == "" {
		return nil
	}
	return c.writePage(&chart)
}

func (c *timelineCommand) print(chart *timeline.Chart) error {
	if done, err := c.output.Machine(c.Out, chart); done {
		return err
	}
	if c.output.Format == "wide" {
		chart.TellTimes()
	}
	return chart.WriteText(c.Out)
}

func (c *timelineCommand) writePage(chart *timeline.Chart) error {
	file, err := os.Create(c.html)
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	if err := chart.WriteHTML(file); err != nil {
		file.Close()
		return fmt.Errorf("--html: %w", err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	_, err = fmt.Fprintf(c.Err, "written: %s\n", c.html)
	return err
}
