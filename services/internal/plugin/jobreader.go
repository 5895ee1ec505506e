package plugin

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	batchv1 "k8s.io/api/batch/v1"
)

// jobReader reads the Job that simulate plays.
type jobReader struct{ cluster clusterFlags }

// AddFlags adds the flags that say which cluster.
func (r *jobReader) AddFlags(fs *pflag.FlagSet) { r.cluster.AddFlags(fs, true) }

// Complete completes job/NAME.
func (r *jobReader) Complete(cmd *cobra.Command, args []string, text string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return complete(&r.cluster, true, false)(cmd, args, text)
}

// Job reads the Job of an argument job/NAME.
func (r *jobReader) Job(ctx context.Context, arg string) (*batchv1.Job, error) {
	name, err := jobArgument([]string{arg})
	if err != nil {
		return nil, err
	}
	reader, err := r.cluster.Connect()
	if err != nil {
		return nil, err
	}
	job, err := reader.Job(ctx, name)
	if err != nil {
		return nil, err
	}
	if _, unread := reader.usePolicy(ctx, &job.ObjectMeta); unread != "" {
		return nil, errors.New(unread) // Without its options, it would be another Job that is played.
	}
	return job, nil
}
