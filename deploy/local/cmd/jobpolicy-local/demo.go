package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/term"

	"jobpolicy.dev/deploy/local/internal/demo"
)

const demoAbout = `Runs the documentation's Jobs, side by side, on a control plane of its own. Shows them in one live
table with what the engine says of each, and what is done to some of them while they run. Then it
compares how each one ended with what is expected, field by field, says which rule of the engine
decided so, and stops everything again. Exits with 0 only if all ended as they should.

The first retry of a pod, and of a container, comes after a second here instead of ten. The CronJob,
due every minute, is asked for one run at once, and a finished Job lives 5 seconds instead of 100.`

func runDemo(args []string, stdout, stderr io.Writer) error {
	opts := demo.Options{Out: stdout}
	flags := newFlags("demo", demoAbout, stderr)
	flags.StringVar(&opts.ExamplesDir, "examples", filepath.Join("deploy", "examples"), "`directory` of the manifests")
	flags.Func("node", nodeUsage, func(kind string) (err error) {
		opts.Node, err = nodeKind(kind)
		return err
	})
	flags.StringVar(&opts.BinDir, "bin-dir", "", "`directory` of jobpolicy-engine and jobpolicy-executor (default: that of this executable)")
	flags.StringVar(&opts.KubernetesDir, "kubernetes-dir", "", kubernetesDirUsage)
	flags.StringVar(&opts.RecordDir, "record", "", "`directory` for what the API server shows of each Job midway and at its end, for the tests of kubectl jobpolicy")
	flags.DurationVar(&opts.Timeout, "timeout", 10*time.Minute, "how long the Jobs may take")
	if err := parseFlags(flags, args); err != nil {
		return err
	}
	if opts.BinDir == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this executable: %w", err)
		}
		opts.BinDir = filepath.Dir(self)
	}
	stateDir, err := os.MkdirTemp("", "jobpolicy-demo-")
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	opts.StateDir = stateDir
	defer os.Remove(stateDir) // if nothing was started; what was, cleans up or leaves its logs
	printer := newPrinter(stderr)
	opts.Progress, opts.Size = printer.step, terminalSize(stdout)
	ctx, stop := signalContext()
	defer stop()
	defer printer.finish()
	return demo.Run(ctx, opts)
}

// The size that is assumed of a terminal that does not tell its own.
const (
	usualColumns = 80
	usualLines   = 24
)

// terminalSize returns a function that tells how many columns and lines w has;
// nil if w is no terminal.
func terminalSize(w io.Writer) func() (columns, lines int) {
	if !isTerminal(w) {
		return nil
	}
	return func() (columns, lines int) {
		columns, lines, err := term.GetSize(int(w.(*os.File).Fd()))
		if err != nil || columns <= 0 || lines <= 0 {
			return usualColumns, usualLines
		}
		return columns, lines
	}
}
