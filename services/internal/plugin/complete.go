package plugin

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// completionTimeout is how long a shell waits for names from a cluster.
const completionTimeout = 3 * time.Second

// complete completes one argument: job/NAME and cronjob/NAME in the namespace, if the
// command takes that kind. Without a cluster it completes nothing.
func complete(flags *clusterFlags, jobs, cronJobs bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		reader, err := flags.Connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []cobra.Completion
		if jobs {
			list, _ := reader.Jobs(ctx, reader.Namespace) // after an error nothing is completed
			for i := range list {
				names = append(names, "job/"+list[i].Name)
			}
		}
		if cronJobs {
			list, _ := reader.CronJobs(ctx, reader.Namespace)
			for i := range list {
				names = append(names, "cronjob/"+list[i].Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
