package specs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// Result is what became of a spec.
type Result struct {
	Spec
	Passed bool
	// Skipped says why the spec ended itself without a result; it then has not passed.
	Skipped string
	// Failure says why it failed. It is empty for one that passed or was skipped.
	Failure string
	// Log is all that the spec printed.
	Log     string
	Seconds float64
}

// Runner runs specs, each in a process of its own.
type Runner struct {
	// Command returns the arguments of a process that runs one spec and writes Ginkgo's JSON report to a file.
	Command func(spec Spec, report string) []string
	// Parallel is how many specs run at a time, without those that only wait.
	Parallel int
	// Dir is where reports are written.
	Dir string
	// Done is told each result as soon as it is there, one at a time.
	Done func(Result)
}

// gracePeriod is how long a spec that is interrupted may take to delete what it made.
const gracePeriod = time.Minute

// Run runs the specs, those that must be alone at the end, and returns their results in the order of the specs. When ctx ends, those under way are interrupted and
// fail, and so do those that have not begun.
func (r Runner) Run(ctx context.Context, specs []Spec) []Result {
	results := make([]Result, len(specs))
	told := make(chan struct{}, 1)
	tell := func(i int, result Result) {
		told <- struct{}{}
		defer func() { <-told }()
		results[i] = result
		r.Done(result)
	}
	var waiting, busy errgroup.Group
	busy.SetLimit(max(1, r.Parallel))
	for i, s := range specs {
		group := &busy
		if takes(s) > 0 {
			group = &waiting
		}
		if !s.Serial {
			group.Go(func() error { tell(i, r.runOne(ctx, i, s)); return nil })
		}
	}
	// They return results, not errors.
	_ = busy.Wait()
	_ = waiting.Wait()
	for i, s := range specs {
		if s.Serial {
			tell(i, r.runOne(ctx, i, s))
		}
	}
	return results
}

func (r Runner) runOne(ctx context.Context, i int, spec Spec) Result {
	result := Result{Spec: spec}
	if ctx.Err() != nil {
		result.Failure = "not begun: " + context.Cause(ctx).Error()
		return result
	}
	report := filepath.Join(r.Dir, strconv.Itoa(i)+".json")
	args := r.Command(spec, report)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	// In a group of its own, it does not get the terminal's Ctrl-C as well: Ginkgo takes a second signal for the wish to
	// leave everything as it is.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = gracePeriod
	begin := time.Now()
	log, err := cmd.CombinedOutput()
	result.Seconds = time.Since(begin).Seconds()
	result.Log = string(log)
	if ctx.Err() != nil {
		result.Failure = "interrupted: " + context.Cause(ctx).Error()
		return result
	}
	return result.judge(report, err)
}

// judge reads the report of a process that ended with the given error. The process's own word is not enough: a spec
// passed only if the report says that it ran.
func (r Result) judge(path string, ended error) Result {
	reported, err := readReport(path, r.Text)
	switch {
	case errors.Is(err, os.ErrNotExist):
		r.Failure = "the process ended without a report"
		if ended != nil {
			r.Failure += ": " + ended.Error()
		}
	case err != nil:
		r.Failure = err.Error()
	case reported.failure != "":
		r.Failure = reported.failure
	case reported.skipped != "":
		r.Skipped = reported.skipped
	case ended != nil:
		r.Failure = "the spec passed, but its process did not: " + ended.Error()
	default:
		r.Passed = true
	}
	return r
}
