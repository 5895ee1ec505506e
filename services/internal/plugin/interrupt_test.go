package plugin

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"jobpolicy.dev/services/internal/cli"
)

// Ctrl-C ends a command that waits for its input, or that computes for long.
func TestASignalEndsEveryCommand(t *testing.T) {
	const job = "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {spec: {restartPolicy: Never}}}}"
	never, _ := io.Pipe()
	cases := map[string]struct {
		in   io.Reader
		args []string
	}{
		"check":               {never, []string{"check", "-f", "-"}},
		"next":                {never, []string{"next", "-f", "-"}},
		"replay":              {never, []string{"replay", "-"}},
		"simulate":            {never, []string{"simulate", "-f", "-"}},
		"simulate many times": {strings.NewReader(job), []string{"simulate", "-f", "-", "--fail-rate", "0.9", "--runs", "1000000"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			ended := make(chan int, 1)
			go func() { ended <- Run(ctx, tc.args, cli.IO{In: tc.in, Out: io.Discard, Err: io.Discard}) }()
			interrupt()
			select {
			case code := <-ended:
				if code != cli.ExitFailed {
					t.Errorf("exit code %d, want %d", code, cli.ExitFailed)
				}
			case <-time.After(20 * time.Second):
				t.Error("goes on")
			}
		})
	}
}
