package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Field managers of the controllers that a probe knows.
const (
	builtInManager  = "kube-controller-manager"
	executorManager = "jobpolicy-executor"
)

// probe prints which controller was the first to act on Jobs that name no manager.
func (c *preflightCommand) probe(ctx context.Context, reader *clusterReader) error {
	writers, err := reader.ProbeJobs(ctx, c.timeout)
	if err != nil {
		return err
	}
	if done, err := c.output.Machine(c.Out, map[string]any{"writers": append([]string{}, writers...)}); done {
		return err
	}
	_, err = fmt.Fprintln(c.Out, probed(writers, c.timeout.String()))
	return err
}

// probed says which controller the writers of the status show.
func probed(writers []string, timeout string) string {
	builtIn, ours := slices.Contains(writers, builtInManager), slices.Contains(writers, executorManager)
	names := strings.Join(writers, " and ")
	switch {
	case len(writers) == 0:
		return fmt.Sprintf("Nobody: no controller wrote the status of a suspended Job within %s. The built-in Job controller is off, and jobpolicy does not run in replace mode.", timeout)
	case len(writers) > 1 && (builtIn || ours):
		return fmt.Sprintf("Two controllers: %s wrote the status of a suspended Job. Switch one of them off.", names)
	case builtIn:
		return fmt.Sprintf("The built-in controller: %s wrote the status of a suspended Job first. Do not run jobpolicy in replace mode beside it.", names)
	case ours:
		return fmt.Sprintf("jobpolicy: %s wrote the status of a suspended Job first. The built-in controller may be on, too: it finds nothing left to write.", names)
	default:
		return fmt.Sprintf("Another controller: %s wrote the status of a suspended Job that names no manager.", names)
	}
}
