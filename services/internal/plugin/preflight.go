package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/jobcheck"
)

const preflightLong = `Lists the Jobs and CronJobs that a deliberate difference between jobpolicy and the
built-in controllers would touch, if jobpolicy took their place. Looks at all namespaces,
unless --namespace names one.

With --probe it finds out instead which controller acts first on a Job that names no manager:
it creates a suspended Job in the namespace, waits until a controller writes its status, and
deletes it. No pod is created. Of two controllers it mostly sees only the first, because the
second has nothing left to write. So use it after the built-in controllers were switched off,
before jobpolicy runs in replace mode. The exit code does not depend on the answer.`

// probeTimeout is how long a probe waits by default. A running controller answers within a
// second or two.
const probeTimeout = 30 * time.Second

// maxExamples is how many objects are named for each difference.
const maxExamples = 5

type preflightCommand struct {
	cli.IO
	cluster clusterFlags
	output  *cli.Output
	probing bool
	timeout time.Duration
}

func newPreflight(streams cli.IO) *cobra.Command {
	c := &preflightCommand{IO: streams, timeout: probeTimeout}
	cmd := &cobra.Command{
		Use: "preflight", Short: "List the Jobs and CronJobs that would behave differently under jobpolicy", Long: preflightLong, Args: noArgument,
		Example: "  kubectl jobpolicy preflight\n  kubectl jobpolicy preflight --probe --namespace default",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.run(cmd.Context(), cmd.Flags().Changed("namespace"))
		},
	}
	c.output = cli.AddOutput(cmd, "wide")
	cmd.Flags().BoolVar(&c.probing, "probe", false, "Find out which controller acts on a Job first: creates a suspended Job, and deletes it.")
	cmd.Flags().Var(cli.Value(&c.timeout, cli.ParseDuration), "timeout", "How long --probe waits for a controller, such as `1m`. Default: 30s.")
	c.cluster.AddFlags(cmd.Flags(), true)
	return cmd
}

func noArgument(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return cli.Usagef("expected no argument, got %q", args[0])
	}
	return nil
}

func (c *preflightCommand) run(ctx context.Context, oneNamespace bool) error {
	reader, err := c.cluster.Connect()
	if err != nil {
		return err
	}
	if c.probing {
		return c.probe(ctx, reader)
	}
	namespace := ""
	if oneNamespace {
		namespace = reader.Namespace
	}
	all := jobcheck.Cluster{Now: now()}
	if all.Jobs, err = reader.Jobs(ctx, namespace); err != nil {
		return err
	}
	if all.CronJobs, err = reader.CronJobs(ctx, namespace); err != nil {
		return err
	}
	touches := slices.Concat([]jobcheck.Touch{}, jobcheck.Preflight(all)) // an empty list is [] in JSON, not null
	if done, err := c.output.Machine(c.Out, map[string]any{"touches": touches}); done {
		return err
	}
	fmt.Fprintln(c.Out, jobcheck.Summary(all))
	if len(touches) == 0 {
		_, err := fmt.Fprintln(c.Out, "No difference touches any of them.")
		return err
	}
	for _, t := range touches {
		names, more := t.Objects, ""
		if n := len(names) - maxExamples; n > 0 && c.output.Format != "wide" {
			names, more = names[:maxExamples], fmt.Sprintf(" and %d more", n)
		}
		fmt.Fprintf(c.Out, "\n%s\n  built-in: %s\n  here:     %s\n  touched:  %s%s\n", cli.Paint(c.Out, cli.Strong, t.What), t.BuiltIn, t.Here, strings.Join(names, ", "), more)
	}
	return nil
}
