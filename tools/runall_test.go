package tools

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// targets stands in for make: what it is called with last is the target.
const targets = `#!/bin/bash
case "${@: -1}" in
ok*) echo "all is well" ;;
bad*) echo "something is wrong"; exit 2 ;;
asks) read -r line; echo "nobody answers" ;;
stays) echo "it has begun"; echo $$ >"$STARTED.new"; mv "$STARTED.new" "$STARTED"; sleep 600 ;;
esac
`

// runAll is run-all.sh with such targets, after some Bash. The file started has the process of the target stays once that runs.
func runAll(ctx context.Context, t *testing.T, jobs, before string, args ...string) (cmd *exec.Cmd, started string) {
	t.Helper()
	dir := t.TempDir()
	makes := filepath.Join(dir, "make")
	if err := os.WriteFile(makes, []byte(targets), 0o700); err != nil {
		t.Fatal(err)
	}
	started = filepath.Join(dir, "started")
	cmd = exec.CommandContext(ctx, "bash", append([]string{"-c", before + `exec ./run-all.sh "$@"`, "bash", "targets"}, args...)...)
	cmd.Env = append(os.Environ(), "MAKE="+makes, "JOBS="+jobs, "STARTED="+started, "TMPDIR="+dir)
	return cmd, started
}

func TestEveryTargetRunsAndAFailureIsTold(t *testing.T) {
	for name, tc := range map[string]struct {
		jobs string
		args []string
		fail bool
		want []string
	}{
		"one after the other": {args: []string{"ok", "ok2"}, want: []string{"\n=== ok\nall is well\n\n=== ok2\nall is well\n", "ok, all 2"}},
		"the first fails": {
			args: []string{"bad", "--", "ok"}, fail: true, want: []string{"=== ok\nall is well\n", "FAILED  bad ", "FAILED, 1 of 2"},
		},
		"one beside others": {
			jobs: "3", args: []string{"ok", "--", "ok2", "bad", "ok3", "bad2", "ok4"}, fail: true,
			want: []string{"=== bad\nsomething is wrong\n", "=== ok4\nall is well\n", "FAILED  bad2 ", "FAILED, 2 of 6"},
		},
		"no number of them": {
			args: []string{"--", "ok", "ok2"}, want: []string{"=== ok begins\n\n=== ok\nall is well\n\n=== ok2 begins\n", "ok, all 2"},
		},
		"one that asks its user": {jobs: "2", args: []string{"--", "asks", "ok"}, want: []string{"=== asks\nnobody answers\n", "ok, all 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			cmd, _ := runAll(ctx, t, tc.jobs, "", tc.args...)
			if _, err := cmd.StdinPipe(); err != nil { // Nobody writes to it.
				t.Fatal(err)
			}
			out, err := cmd.CombinedOutput()
			if failed := err != nil; failed != tc.fail {
				t.Errorf("%v, want a failure: %t", err, tc.fail)
			}
			for _, want := range tc.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("%q is not in\n%s", want, out)
				}
			}
		})
	}
}

// Who ends it, or closes its terminal, ends what it runs, too, and sees what that has printed; also where interrupts are
// ignored, as in the background of a script.
func TestNothingRunsOnWithoutIt(t *testing.T) {
	for name, tc := range map[string]struct {
		signal syscall.Signal
		before string
	}{
		"interrupted":               {signal: syscall.SIGINT},
		"ended":                     {signal: syscall.SIGTERM},
		"ended, without interrupts": {signal: syscall.SIGTERM, before: "trap '' INT; "},
		"the terminal is closed":    {signal: syscall.SIGHUP},
	} {
		t.Run(name, func(t *testing.T) {
			// If this process ignored the signal, all that it starts would, too. What it catches has the default there.
			caught := make(chan os.Signal, 1)
			signal.Notify(caught, tc.signal)
			defer signal.Stop(caught)
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			cmd, started := runAll(ctx, t, "2", tc.before, "--", "stays", "ok")
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, time.Second
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			target := awaitProcess(ctx, t, started)
			defer syscall.Kill(target, syscall.SIGKILL) // It has ended unless the test failed.
			if err := cmd.Process.Signal(tc.signal); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
				t.Errorf("it ended with %v, want exit status 130", err)
			}
			if err := syscall.Kill(target, 0); err == nil {
				t.Error("its target runs on")
			}
			if want := "=== stays\nit has begun\n"; !strings.Contains(out.String(), want) {
				t.Errorf("%q is not in\n%s", want, out.String())
			}
		})
	}
}

// awaitProcess waits until a file names a process.
func awaitProcess(ctx context.Context, t *testing.T, file string) int {
	t.Helper()
	for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		if text, err := os.ReadFile(file); err == nil {
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("the target does not begin")
	return 0
}
