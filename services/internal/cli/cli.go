// Package cli has what the programs for people share: exit codes, errors on the command
// line, flags that a function parses, and output as text, JSON or YAML.
//
// Weighed against cli-runtime's printers: their EscapeTerminal escapes no control
// characters but ESC and CR.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"jobpolicy.dev/services/internal/buildinfo"
)

// Exit codes. Commands that answer yes or no (check, wait) have ExitNo for no.
const (
	ExitOK    = 0
	ExitNo    = 1
	ExitUsage = 2
	// ExitFailed says that there is no answer: a file or the cluster could not be read.
	ExitFailed = 3
)

// IO are the streams of a command.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
}

// ErrNo ends a command that has printed its answer, if that is no.
var ErrNo = errors.New("the answer is no")

// UsageError is an error on the command line.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap is for errors.As.
func (e UsageError) Unwrap() error { return e.Err }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Run runs a program and returns its exit code.
func Run(ctx context.Context, root *cobra.Command, args []string, streams IO) int {
	root.Version = buildinfo.Summary()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return UsageError{err} })
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if out, ok := streams.Out.(*printable); ok && (err == nil || errors.Is(err, ErrNo)) && out.err != nil {
		err = out.err
	}
	var usage UsageError
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, ErrNo):
		return ExitNo
	case errors.As(err, &usage):
		fmt.Fprintf(streams.Err, "error: %s\n%s --help has more\n", escaped([]byte(err.Error())), displayName(cmd))
		return ExitUsage
	}
	fmt.Fprintf(streams.Err, "error: %s\n", escaped([]byte(err.Error())))
	return ExitFailed
}

// Interruptible lets a command end when its context is done, also while it reads a file or
// computes without a look at the context. It is for commands that have nothing to clean up.
func Interruptible(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ended := make(chan error, 1)
		go func() { ended <- run(cmd, args) }()
		select {
		case err := <-ended:
			return err
		case <-cmd.Context().Done():
			return context.Cause(cmd.Context())
		}
	}
	return cmd
}

// displayName is the command as the user types it.
func displayName(cmd *cobra.Command) string {
	return strings.Replace(cmd.CommandPath(), "kubectl-jobpolicy", "kubectl jobpolicy", 1)
}
