package supervise

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobpolicy.dev/deploy/local/must"
)

// helperEnv makes the test binary behave as one of the programs in helpers.
const helperEnv = "SUPERVISE_TEST_HELPER"

var helpers = map[string]func(args []string){
	// exit CODE
	"exit": func(args []string) {
		code, _ := strconv.Atoi(args[0])
		fmt.Println("about to exit")
		os.Exit(code)
	},
	// die SIGNAL
	"die": func(args []string) {
		number, _ := strconv.Atoi(args[0])
		syscall.Kill(os.Getpid(), syscall.Signal(number))
		select {}
	},
	"wait": func([]string) {
		fmt.Println("ready")
		for {
			time.Sleep(time.Hour)
		}
	},
	// stubborn ignores SIGTERM.
	"stubborn": func([]string) {
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		for {
			time.Sleep(time.Hour)
		}
	},
	// answer prints a line for each SIGUSR1.
	"answer": func([]string) {
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGUSR1)
		fmt.Println("ready")
		for range asked {
			fmt.Println("alive")
		}
	},
	// parent LOGFILE supervises a child and prints its process id.
	"parent": func(args []string) {
		child, err := Start(helperCommand(args[0], "wait"))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(child.PID())
		for {
			time.Sleep(time.Hour)
		}
	},
}

func TestMain(m *testing.M) {
	if helper, ok := helpers[os.Getenv(helperEnv)]; ok {
		helper(os.Args[1:])
		return
	}
	os.Exit(m.Run())
}

func helperCommand(logFile, helper string, args ...string) Command {
	return Command{
		Path:    os.Args[0],
		Args:    args,
		Env:     []string{helperEnv + "=" + helper},
		LogFile: logFile,
	}
}

func start(t *testing.T, logFile, helper string, args ...string) *Process {
	t.Helper()
	p, err := Start(helperCommand(logFile, helper, args...))
	must.Succeed(t, err)
	t.Cleanup(func() { p.Kill() })
	return p
}

// waitForLine waits until the process has written a line that contains text.
func waitForLine(t *testing.T, p *Process, text string) {
	t.Helper()
	eventually(t, func() bool { return strings.Contains(p.Tail(100), text) }, "no line with "+text)
}

func eventually(t *testing.T, done func() bool, complaint string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatal(complaint)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestExitState(t *testing.T) {
	cases := map[string]struct {
		helper, arg string
		want        ExitState
		wantText    string
	}{
		"a process that succeeds":      {"exit", "0", ExitState{}, "exit status 0"},
		"a process that fails":         {"exit", "7", ExitState{Code: 7}, "exit status 7"},
		"a process that a signal ends": {"die", "9", ExitState{Code: -1, Signal: syscall.SIGKILL}, "signal: killed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := start(t, filepath.Join(t.TempDir(), "log"), tc.helper, tc.arg)
			<-p.Exited()
			must.Equal(t, "exit state", tc.want, p.ExitState())
			must.Equal(t, "text", tc.wantText, p.ExitState().String())
			if p.Running() {
				t.Error("a process that has exited counts as running")
			}
		})
	}
}

func TestStartReportsAMissingExecutable(t *testing.T) {
	_, err := Start(Command{Path: "/nonexistent/program", LogFile: filepath.Join(t.TempDir(), "log")})
	if err == nil || !strings.Contains(err.Error(), "/nonexistent/program") {
		t.Errorf("error does not name the executable: %v", err)
	}
}

func TestTailShowsOnlyThisRun(t *testing.T) {
	logFile := filepath.Join(t.TempDir(), "logs", "component.log")
	first := start(t, logFile, "wait")
	waitForLine(t, first, "ready")
	first.Kill()

	second := start(t, logFile, "exit", "1")
	<-second.Exited()
	must.Equal(t, "tail of the second run", "about to exit", second.Tail(10))
	text, err := os.ReadFile(logFile)
	must.Succeed(t, err)
	must.Equal(t, "whole log", "ready\nabout to exit\n", string(text))
}

func TestStop(t *testing.T) {
	const long = time.Hour
	cases := map[string]struct {
		helper     string
		before     func(p *Process)
		grace      time.Duration
		wantState  ExitState
		wantKilled bool
	}{
		"a process that obeys ends by SIGTERM": {
			helper: "wait", grace: long,
			wantState: ExitState{Code: -1, Signal: syscall.SIGTERM},
		},
		"a process that ignores SIGTERM is killed after the grace period": {
			helper: "stubborn", grace: 50 * time.Millisecond,
			wantState:  ExitState{Code: -1, Signal: syscall.SIGKILL},
			wantKilled: true,
		},
		"a paused process is woken up to end": {
			helper: "wait", grace: long,
			before:    func(p *Process) { p.Signal(syscall.SIGSTOP) },
			wantState: ExitState{Code: -1, Signal: syscall.SIGTERM},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := start(t, filepath.Join(t.TempDir(), "log"), tc.helper)
			waitForLine(t, p, "ready")
			if tc.before != nil {
				tc.before(p)
			}
			state, killed := p.Stop(context.Background(), tc.grace)
			must.Equal(t, "exit state", tc.wantState, state)
			if killed != tc.wantKilled {
				t.Errorf("killed is %t, want %t", killed, tc.wantKilled)
			}
		})
	}
}

func TestStopKillsWhenItsContextEnds(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "log"), "stubborn")
	waitForLine(t, p, "ready")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, killed := p.Stop(ctx, time.Hour); !killed {
		t.Error("the process was not killed")
	}
}

func TestChildLeadsItsOwnProcessGroup(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "log"), "wait")
	group, err := syscall.Getpgid(p.PID())
	must.Succeed(t, err)
	if group != p.PID() {
		t.Errorf("process group is %d, want the child's own %d", group, p.PID())
	}
}

func TestLastLines(t *testing.T) {
	cases := map[string]struct {
		text string
		n    int
		cut  bool
		want string
	}{
		"fewer lines than asked for":           {text: "a\nb\n", n: 5, want: "a\nb"},
		"more lines than asked for":            {text: "a\nb\nc\n", n: 2, want: "b\nc"},
		"the end of a line is dropped":         {text: "rest of a\nb\nc\n", n: 5, cut: true, want: "b\nc"},
		"the end of the only line is shown":    {text: "rest of a", n: 5, cut: true, want: "rest of a"},
		"empty lines at the end do not count":  {text: "a\nb\n\n\n", n: 1, want: "b"},
		"an empty log has an empty last line":  {n: 3},
		"a last line without break is a line":  {text: "a\nb", n: 1, want: "b"},
		"a crash is shown from its reason on":  {text: "a\npanic: b\nc\nd\ne\n", n: 2, want: "panic: b\nc"},
		"a crash at the end shows what led to": {text: "a\nb\npanic: c\nd\n", n: 3, want: "b\npanic: c\nd"},
		"no first line is dropped without cut": {text: "a\nb", n: 2, want: "a\nb"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			must.Equal(t, "lines", tc.want, lastLines(tc.text, tc.n, tc.cut))
		})
	}
}

func TestTailReadsOnlyTheEndOfALongLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var text strings.Builder
	for i := range 200000 {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	must.Succeed(t, os.WriteFile(path, []byte(text.String()), 0o600))
	must.Equal(t, "tail", "line 199998\nline 199999", Tail(path, 0, 2))
	whole := strings.Split(Tail(path, 0, 1<<30), "\n")
	if len(whole) >= 200000 || !strings.HasPrefix(whole[0], "line 1") {
		t.Errorf("the tail starts with %q and has %d lines", whole[0], len(whole))
	}
}
