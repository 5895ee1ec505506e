package plugin

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/simulation"
)

// Run runs the program and returns its exit code.
func Run(ctx context.Context, args []string, streams cli.IO) int {
	streams.Out = cli.Printable(streams.Out)
	return cli.Run(ctx, newRoot(streams), args, streams)
}

func newRoot(streams cli.IO) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-jobpolicy",
		Short: "Explain, simulate and check Jobs and CronJobs",
		Long: `Explains why a Job or CronJob is in its state, simulates Jobs, and checks manifests.

Works on any cluster, also where nothing of jobpolicy is installed. Nothing is written
to the cluster, except by preflight --probe, which creates a Job and deletes it.`,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl jobpolicy"},
	}
	root.AddCommand(newExplain(streams), newWait(streams), newTimeline(streams), newUI(streams), newDecisions(streams), newPreflight(streams))
	for _, cmd := range []*cobra.Command{simulation.New(streams, &jobReader{}), newNext(streams), newCheck(streams), newReplay(streams)} {
		root.AddCommand(cli.Interruptible(cmd))
	}
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return cli.Usagef("unknown command %q; expected one of %s", args[0], strings.Join(commandNames(cmd), ", "))
		}
		return cmd.Help()
	}
	root.Args = cobra.ArbitraryArgs
	return root
}

func commandNames(root *cobra.Command) []string {
	var names []string
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() {
			names = append(names, cmd.Name())
		}
	}
	return names
}
