// Jobpolicy-executor runs Kubernetes Jobs: it watches them, asks the policy engine what to
// do about them, and carries out the decisions.
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
		Name:     name,
		Summary:  summary,
		Options:  o,
		Headroom: 8 << 20,
		Run:      func(ctx context.Context, log *slog.Logger) error { return run(ctx, o, log) },
	}
}
