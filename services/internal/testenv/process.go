package testenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// role is the environment variable that is set in a process which runs the program.
const role = "JOBPOLICY_TEST_PLAYS_PROGRAM"

// Main must be called from TestMain. A test runs a program as a separate process by starting its own
// binary again, which then runs the program instead of the tests.
func Main(m *testing.M, program func()) {
	if os.Getenv(role) != "" {
		program()
		return
	}
	os.Exit(m.Run())
}

// CommandLine starts a program in this process, and looks for texts in what it prints.
func CommandLine(t *testing.T, start func(ctx context.Context, args []string, stdout, stderr io.Writer) int, args []string, wantCode int, want []string) {
	t.Helper()
	var printed bytes.Buffer
	if code := start(t.Context(), args, &printed, &printed); code != wantCode {
		t.Errorf("exit code = %d, want %d", code, wantCode)
	}
	for _, text := range want {
		if !strings.Contains(printed.String(), text) {
			t.Errorf("output lacks %q:\n%s", text, printed.String())
		}
	}
}

// A Process is a running program.
type Process struct {
	// Log holds what it wrote to standard error.
	Log  *Log
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// Start starts the program. It is killed at the end of the test if it still runs.
func Start(t testing.TB, env []string, args ...string) *Process {
	t.Helper()
	return StartProgram(t, os.Args[0], append([]string{role + "=1"}, env...), args...)
}

// StartProgram is Start for a program in a file of its own.
func StartProgram(t testing.TB, file string, env []string, args ...string) *Process {
	t.Helper()
	p := &Process{Log: &Log{}, cmd: exec.Command(file, args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = p.Log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // ExitCode reads the result
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("log of the process:\n%s", p.Log.String())
		}
	})
	return p
}

// Signal sends a signal.
func (p *Process) Signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// ID is the process ID.
func (p *Process) ID() int { return p.cmd.Process.Pid }

// ExitCode waits for the end and returns the exit code.
func (p *Process) ExitCode(t testing.TB) int {
	t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(waitTimeout):
		t.Fatal("the process does not end")
		return -1
	}
}

// Logged waits for a line that contains the message, and returns its field key.
func (p *Process) Logged(t testing.TB, message, key string) string {
	t.Helper()
	field := regexp.MustCompile(regexp.QuoteMeta(message) + `.*\b` + key + `=(\S*)`)
	var value string
	Eventually(t, func() error {
		match := field.FindStringSubmatch(p.Log.String())
		if match == nil {
			return fmt.Errorf("log lacks %q with %s", message, key)
		}
		value = match[1]
		return nil
	})
	return value
}

// Readyz waits until /readyz has the code, and text in its body.
func Readyz(t testing.TB, httpAddress string, code int, text string) {
	t.Helper()
	Eventually(t, func() error {
		got, body, err := Get("http://" + httpAddress + "/readyz")
		if err != nil {
			return err
		}
		if got != code || !strings.Contains(body, text) {
			return fmt.Errorf("/readyz = %d %q, want %d with %q", got, body, code, text)
		}
		return nil
	})
}

// Get fetches a URL.
func Get(url string) (code int, body string, err error) {
	resp, err := http.Get(url)
	if err != nil {
		return 0, "", err
	}
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), errors.Join(err, resp.Body.Close())
}
