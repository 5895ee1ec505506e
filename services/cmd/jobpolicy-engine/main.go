// Jobpolicy-engine serves the policy engine over gRPC. It keeps no state: any
// number of replicas may run, and any may be stopped at any time.
package main

import (
	"context"
	"log/slog"

	"jobpolicy.dev/services/internal/servicemain"
)

func main() { newProgram().Main() }

func newProgram() *servicemain.Program {
	o := &options{}
	return &servicemain.Program{
		Name:    name,
		Summary: summary,
		Options: o,
		Run:     func(ctx context.Context, log *slog.Logger) error { return run(ctx, o, log) },
	}
}
