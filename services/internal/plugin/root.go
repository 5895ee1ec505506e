package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"jobpolicy.dev/services/internal/buildinfo"
)

// Exit codes. Commands that answer yes or no (check, wait) have ExitNo for no.
const (
	ExitOK    = 0
	ExitNo    = 1
	ExitUsage = 2
	// ExitFailed says that no answer was found: a file or the cluster could not be read.
	ExitFailed = 3
)

// IO is what a command reads from and prints to.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
}

// noError carries an exit code of a command that has told its answer.
type noError struct{ code int }

func (e noError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// usageError is a mistake on the command line.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Run runs the program and returns its exit code.
func Run(ctx context.Context, args []string, streams IO) int {
	root := newRoot(streams)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	var no noError
	var usage usageError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &no):
		return no.code
	case errors.As(err, &usage):
		fmt.Fprintf(streams.Err, "error: %v\n%s --help has more\n", err, displayName(cmd))
		return ExitUsage
	}
	fmt.Fprintf(streams.Err, "error: %v\n", err)
	return ExitFailed
}

// displayName is how the user calls a command.
func displayName(cmd *cobra.Command) string {
	return strings.Replace(cmd.CommandPath(), "kubectl-jobpolicy", "kubectl jobpolicy", 1)
}

func newRoot(streams IO) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-jobpolicy",
		Short: "Why a Job is where it is, what comes next, and what would happen if",
		Long: `Why a Job is where it is, what comes next, and what would happen if.

Works on any cluster, also where nothing of jobpolicy is installed. Nothing is ever
written to the cluster.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl jobpolicy"},
		Version:       buildinfo.Summary(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newSimulate(streams), newNext(streams), newExplain(streams), newCheck(streams), newWait(streams), newTimeline(streams), newUI(streams), newDecisions(streams), newPreflight(streams), newReplay(streams))
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usagef("unknown command %q; expected one of %s", args[0], strings.Join(commandNames(cmd), ", "))
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

// fileOnly is for commands that take a file by flag and no argument.
func fileOnly(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("expected no argument, got %q; a file is given by -f", args[0])
	}
	return nil
}

// terminal reports whether text goes to a person who may see colours.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
