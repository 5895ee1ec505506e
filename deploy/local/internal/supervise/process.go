package supervise

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Command says what to run.
type Command struct {
	// Path is the executable's file, absolute or relative to this process.
	Path string
	// Args are the arguments without the program's own name.
	Args []string
	// Env holds KEY=VALUE lines that are added to the environment of this
	// process; a later line wins over an earlier one.
	Env []string
	// Dir is the working directory; empty means that of this process.
	Dir string
	// LogFile receives standard output and standard error, appended.
	LogFile string
	// Thread starts the child, which so inherits the thread's namespaces; nil
	// means a thread in the namespaces of this process. The thread's namespace of
	// processes has to end with this process, and the child with it.
	Thread *Thread
	// Cloneflags ask for new namespaces (CLONE_NEW…), of which the child is the
	// first process. Only Linux has them.
	Cloneflags uintptr
}

// ExitState says how a process ended. Exactly one of the two is meaningful:
// when Signal is not zero the process died of it and Code is -1.
type ExitState struct {
	Code   int
	Signal syscall.Signal
}

// String describes the state as "exit status 1" or "signal: killed".
func (s ExitState) String() string {
	if s.Signal != 0 {
		return "signal: " + s.Signal.String()
	}
	return fmt.Sprintf("exit status %d", s.Code)
}

// Process is a started child. Its methods may be called from any goroutine.
type Process struct {
	cmd       *exec.Cmd
	logFile   string
	logOffset int64
	exited    chan struct{}
	state     ExitState // written once, before exited is closed
}

// Start runs c. The child is reaped in the background; Exited tells when.
func Start(c Command) (*Process, error) {
	logFile, offset, err := openLog(c.LogFile)
	if err != nil {
		return nil, err
	}
	defer logFile.Close()

	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Dir = c.Dir
	cmd.Stdout = logFile
	cmd.Stderr = logFile
	cmd.SysProcAttr = childAttributes(c)
	if err := startOnLastingThread(cmd, c.Thread); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	p := &Process{cmd: cmd, logFile: c.LogFile, logOffset: offset, exited: make(chan struct{})}
	go p.reap()
	return p, nil
}

// openLog opens a log for appending and returns where this run's output begins.
func openLog(path string) (*os.File, int64, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, 0, fmt.Errorf("log directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("log file: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("log file: %w", err)
	}
	return f, info.Size(), nil
}

// reap waits for the process. The error of Wait repeats what the process state
// says, because no copying goroutines are involved.
func (p *Process) reap() {
	_ = p.cmd.Wait()
	p.state = exitState(p.cmd.ProcessState)
	close(p.exited)
}

func exitState(ps *os.ProcessState) ExitState {
	if ps == nil {
		return ExitState{Code: -1}
	}
	if ws, ok := ps.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ExitState{Code: -1, Signal: ws.Signal()}
	}
	return ExitState{Code: ps.ExitCode()}
}

// PID returns the process id, also after the process has ended.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited is closed when the process has ended and was reaped.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// ExitState says how the process ended. It must not be called before Exited is
// closed.
func (p *Process) ExitState() ExitState { return p.state }

// Running reports whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Signal sends sig to the process alone, not to its group. A process that has
// ended gives [os.ErrProcessDone].
func (p *Process) Signal(sig syscall.Signal) error {
	return p.cmd.Process.Signal(sig)
}

// Stop sends SIGTERM and waits. When ctx ends or grace passes first, it sends
// SIGKILL and waits for that; killed then is true.
func (p *Process) Stop(ctx context.Context, grace time.Duration) (state ExitState, killed bool) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	// A stopped (SIGSTOP) process would keep the signal pending for ever.
	_ = p.Signal(syscall.SIGTERM)
	_ = p.Signal(syscall.SIGCONT)
	select {
	case <-p.exited:
		return p.state, false
	case <-timer.C:
	case <-ctx.Done():
	}
	return p.Kill(), true
}

// Kill sends SIGKILL and waits for the process to end.
func (p *Process) Kill() ExitState {
	_ = p.Signal(syscall.SIGKILL)
	<-p.exited
	return p.state
}

// Tail returns the last lines that this run wrote to its log, at most n.
func (p *Process) Tail(n int) string { return Tail(p.logFile, p.logOffset, n) }
