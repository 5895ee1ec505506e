package hostnode

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// launcher starts processes from one operating-system thread that lives as long as the node. A parent death signal is
// sent when the thread that forked the child ends, not when its process does; the Go runtime may end any other thread.
type launcher struct {
	requests chan launchRequest
}

type launchRequest struct {
	cmd   *exec.Cmd
	reply chan error
}

// newLauncher starts the thread. close ends it, and with it every process it started that is still alive.
func newLauncher() *launcher {
	l := &launcher{requests: make(chan launchRequest)}
	go l.serve()
	return l
}

func (l *launcher) serve() {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	for r := range l.requests {
		r.reply <- r.cmd.Start()
	}
}

func (l *launcher) close() { close(l.requests) }

func (l *launcher) start(cmd *exec.Cmd) error {
	reply := make(chan error, 1)
	l.requests <- launchRequest{cmd, reply}
	return <-reply
}

// command is a program ready to be started: nothing in it needs a look-up any more.
type command struct {
	path string
	argv []string
	env  []string
	dir  string
}

// ending is how a process ended.
type ending struct {
	// code is the exit code, 128+n after a death by signal n.
	code int32
	// signal that the process died of; 0 if it exited.
	signal int32
	at     time.Time
}

// process is a running leader of a process group.
type process struct {
	cmd *exec.Cmd

	mu sync.Mutex
	// reaped means that the process id may belong to somebody else by now.
	reaped bool
}

// run starts c as the leader of a new process group, with both output streams going to log. When the leader has ended,
// the rest of its group is killed, the log is complete, and then ended is called once, from another goroutine.
func (l *launcher) run(c command, log *runLog, ended func(ending)) (*process, error) {
	output, input, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer input.Close()
	cmd := &exec.Cmd{
		Path: c.path, Args: c.argv, Env: c.env, Dir: c.dir,
		Stdout: input, Stderr: input,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}
	if err := l.start(cmd); err != nil {
		output.Close()
		return nil, err
	}
	p := &process{cmd: cmd}
	go p.await(output, log, ended)
	return p, nil
}

// drainLimit bounds how long the log of an ended container waits for a process that left the group and holds the pipe.
const drainLimit = 2 * time.Second

func (p *process) await(output *os.File, log *runLog, ended func(ending)) {
	copied := make(chan struct{})
	go func() {
		log.copyFrom(output)
		close(copied)
	}()
	p.waitForLeader()
	at := time.Now()
	p.reap()
	output.SetReadDeadline(at.Add(drainLimit))
	<-copied
	output.Close()
	code, signal := exitOf(p.cmd.ProcessState)
	ended(ending{code: code, signal: signal, at: at})
}

// waitForLeader returns when the leader has ended, and leaves it a zombie so that its id stays taken.
func (p *process) waitForLeader() {
	for {
		err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// reap kills what is left of the group and takes the leader's exit status.
func (p *process) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL)
	p.cmd.Wait() // the status is read from ProcessState; a non-zero exit is no error here
	p.reaped = true
}

// signal sends a signal to the whole process group, unless the leader is gone.
func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return
	}
	unix.Kill(-p.cmd.Process.Pid, s)
}

func exitOf(state *os.ProcessState) (code, signal int32) {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok {
		return 255, 0
	}
	if status.Signaled() {
		return 128 + int32(status.Signal()), int32(status.Signal())
	}
	return int32(status.ExitStatus()), 0
}
