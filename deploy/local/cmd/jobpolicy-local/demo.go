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

const demoAbout = `Runs the documentation's Jobs on a control plane of its own, shows them in one live table, checks
how each one ends, and stops everything again. Exits with 0 only if all ended as they should.`

func runDemo(args []string, stdout, stderr io.Writer) error {
	opts := demo.Options{Out: stdout}
	flags := newFlags("demo", demoAbout, stderr)
	flags.StringVar(&opts.ExamplesDir, "examples", filepath.Join("deploy", "examples"), "`directory` of the manifests")
	flags.StringVar(&opts.BinDir, "bin-dir", "", "`directory` of jobpolicy-engine and jobpolicy-executor (default: that of this executable)")
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
	opts.Progress, opts.Width = printer.step, terminalWidth(stdout)
	ctx, stop := signalContext()
	defer stop()
	defer printer.finish()
	return demo.Run(ctx, opts)
}

// usualWidth is assumed of a terminal that does not tell its width.
const usualWidth = 80

// terminalWidth returns a function that tells how many columns w has; nil if w
// is no terminal.
func terminalWidth(w io.Writer) func() int {
	if !isTerminal(w) {
		return nil
	}
	return func() int {
		width, _, err := term.GetSize(int(w.(*os.File).Fd()))
		if err != nil || width <= 0 {
			return usualWidth
		}
		return width
	}
}
