package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"jobpolicy.dev/test/node/specs"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == oneSpec {
		os.Exit(runOne(os.Args[2:]))
	}
	o, err := parse(os.Args[1:], os.Stderr)
	if err != nil {
		if errors.Is(err, flag.ErrHelp) {
			os.Exit(exitOK)
		}
		os.Exit(exitUsage)
	}
	ok, err := run(o, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubernetes-specs:", err)
	}
	if err != nil || !ok {
		os.Exit(exitFailed)
	}
}

// options are what the flags say.
type options struct {
	kubeconfig   string
	choice       specs.Choice
	parallel     int
	timeout      time.Duration
	list, images bool
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("kubernetes-specs", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig `file` of the cluster, with all rights")
	flags.BoolVar(&o.choice.All, "all", false, "also run the specs that take more than two minutes")
	flags.IntVar(&o.parallel, "parallel", 4, "how many specs run at a time, besides those that only wait")
	flags.DurationVar(&o.timeout, "timeout", 15*time.Minute, "after this time what still runs is interrupted, and fails")
	flags.BoolVar(&o.list, "list", false, "print the specs and run none")
	flags.BoolVar(&o.images, "images", false, "print the images that the specs need and run none")
	flags.Func("focus", "run only specs whose name matches this `regexp`", func(text string) (err error) {
		o.choice.Focus, err = regexp.Compile(text)
		return err
	})
	flags.Func("feature-gates", "`gates` that are off by default and on in the cluster, with commas between", func(text string) error {
		o.choice.Gates = strings.Split(text, ",")
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		err := fmt.Errorf("unexpected argument %q", flags.Arg(0))
		fmt.Fprintln(stderr, "kubernetes-specs:", err)
		return o, err
	}
	return o, nil
}

// run does what the options ask for and reports whether all specs passed.
func run(o options, out io.Writer) (bool, error) {
	all := list()
	if err := specs.Check(all); err != nil {
		return false, err
	}
	chosen, left := o.choice.Choose(all)
	switch {
	case o.images:
		fmt.Fprintln(out, strings.Join(images(), "\n"))
		return true, nil
	case o.list:
		for _, s := range chosen {
			fmt.Fprintln(out, s.Name())
		}
		return true, nil
	case len(chosen) == 0:
		return false, errors.New("no spec is left to run: --focus matches none, or only some that need --all or --feature-gates")
	case o.kubeconfig == "":
		return false, errors.New("--kubeconfig: expected a file, or the environment variable KUBECONFIG")
	}
	return runAll(o, out, chosen, left)
}

func runAll(o options, out io.Writer, chosen []specs.Spec, left []specs.Left) (bool, error) {
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "kubernetes-specs-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("all specs together took %s (--timeout)", o.timeout))
	defer cancel()

	begin := time.Now()
	results := specs.Runner{
		Command: func(s specs.Spec, report string) []string {
			return []string{self, oneSpec, "--kubeconfig", o.kubeconfig, "--report", report, "--spec", s.Text}
		},
		Parallel: o.parallel,
		Dir:      dir,
		Done:     func(r specs.Result) { show(out, r) },
	}.Run(ctx, chosen)
	fmt.Fprintf(out, "\n%sin %.0f s\n", specs.Table(results, left), time.Since(begin).Seconds())
	return allPassed(results), nil
}

// logLines is how much is shown of what a spec printed that failed.
const logLines = 150

// show prints a result as soon as it is there, and why a spec failed.
func show(out io.Writer, r specs.Result) {
	fmt.Fprintln(out, r.Line())
	if r.Failure == "" {
		return
	}
	lines := strings.Split(strings.TrimRight(r.Log, "\n"), "\n")
	if len(lines) > logLines {
		lines = append([]string{"…"}, lines[len(lines)-logLines:]...)
	}
	fmt.Fprintf(out, "%s\n--- its log\n%s\n---\n", r.Failure, strings.Join(lines, "\n"))
}

func allPassed(results []specs.Result) bool {
	return !slices.ContainsFunc(results, func(r specs.Result) bool { return !r.Passed })
}
