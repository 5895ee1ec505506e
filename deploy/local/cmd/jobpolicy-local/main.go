// Command jobpolicy-local is a Kubernetes control plane for a developer's machine in one
// executable. Its command up starts all processes; most of them are the same executable with
// another command (node, etcd, kube-apiserver, …).
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	_ "time/tzdata" // time zones of CronJobs, where the system has no database

	"jobpolicy.dev/deploy/local/internal/components"
)

const usage = `jobpolicy-local is a Kubernetes control plane for one's own machine, in which Jobs are
decided by the policy engine and carried out by the executor.

Usage:
  jobpolicy-local up [flags]      start everything, print a KUBECONFIG line, stop on Ctrl-C
  jobpolicy-local demo [flags]    run example Jobs on a control plane of their own, and check how they end
  jobpolicy-local load FILE…      load container images into a cluster with --node=containers
  jobpolicy-local help            show this text
  jobpolicy-local COMMAND -h      show the flags of a command

The commands below are the processes that "up" starts:
  jobpolicy-local node [flags]    a node that runs containers as processes of this machine
  jobpolicy-local namespaces [flags]
                                  the first process of a cluster that is apart from this machine
  jobpolicy-local image-registry [flags]
                                  stands for every registry of images inside such a cluster
  jobpolicy-local etcd | kube-apiserver | kube-controller-manager | kube-scheduler [flags]
                                  the upstream servers with their own flags

With --node=processes, the default, nothing isolates a container from the machine. Run only what you
would run in a shell.
`

// Exit codes of the commands that are not upstream's.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run executes one command and returns its exit code.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	name, rest := args[0], args[1:]
	if components.Known(name) {
		return components.Run(name, rest)
	}
	switch name {
	case "up":
		return exitCode(runUp(rest, stdout, stderr), stderr)
	case "demo":
		return exitCode(runDemo(rest, stdout, stderr), stderr)
	case "node":
		return exitCode(runNode(rest, stderr), stderr)
	case "namespaces":
		return exitCode(runNamespaces(rest, stderr), stderr)
	case "image-registry":
		return exitCode(runImageRegistry(rest, stderr), stderr)
	case "load":
		return exitCode(runLoad(rest, stderr), stderr)
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage)
		return exitOK
	}
	fmt.Fprintf(stderr, "jobpolicy-local: no command %q\n\n%s", name, usage)
	return exitUsage
}

// usageError is an error in the arguments.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// exitCode prints the error of a command, if any.
func exitCode(err error, stderr io.Writer) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.As(err, &usageError{}):
		fmt.Fprintf(stderr, "jobpolicy-local: %v\n", err)
		return exitUsage
	}
	fmt.Fprintf(stderr, "jobpolicy-local: %v\n", err)
	return exitError
}

// newFlags makes the flag set of a command, with a sentence above its flags.
func newFlags(command, about string, stderr io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintf(stderr, "Usage: jobpolicy-local %s [flags]\n\n%s\n\nFlags:\n", command, about)
		flags.PrintDefaults()
	}
	return flags
}

// parseFlags parses args, which must be flags only. The flag package prints its
// own message and the usage when they are wrong.
func parseFlags(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return usageError{err}
	}
	if flags.NArg() > 0 {
		return usageError{fmt.Errorf("%s: unexpected argument %q", flags.Name(), flags.Arg(0))}
	}
	return nil
}
