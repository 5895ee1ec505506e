package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// clockTick is the unit of CPU times in /proc, on every Linux that Go runs on.
	clockTick = 10 * time.Millisecond
	// stopPatience is how long a process may take to end after SIGTERM.
	stopPatience = 30 * time.Second
)

// A process is a program of a contender.
type process struct {
	cmd  *exec.Cmd
	log  string
	gone chan struct{}
}

// startProcess starts a program. Its output goes to the file log.
func startProcess(log, path string, env []string, args ...string) (*process, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p := &process{cmd: exec.Command(path, args...), log: log, gone: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = file, file
	p.cmd.SysProcAttr = childAttributes()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in the log
		close(p.gone)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// check returns an error if the process has ended.
func (p *process) check() error {
	select {
	case <-p.gone:
		return fmt.Errorf("%s ended: %s\n%s", p.cmd.Path, p.cmd.ProcessState, p.tail())
	default:
		return nil
	}
}

// tail is the end of its output.
func (p *process) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

func (p *process) stop() error {
	err := p.cmd.Process.Signal(syscall.SIGTERM)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.gone:
		return nil
	case <-time.After(stopPatience):
		err := p.cmd.Process.Kill()
		<-p.gone
		return errors.Join(fmt.Errorf("%s did not end", p.cmd.Path), err)
	}
}

// usage is what a process has used.
type usage struct {
	cpu time.Duration
	// resident and peak are sizes in memory in bytes, now and at the most.
	resident, peak float64
}

// usageOf reads what the kernel says of a process (Linux only).
func usageOf(pid int) (usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return usage{}, err
	}
	// The name, in parentheses, may hold anything; what follows it begins with field 3.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] { // utime and stime, fields 14 and 15
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return usage{}, fmt.Errorf("CPU time of process %d: %w", pid, err)
		}
		ticks += n
	}
	return usage{
		cpu:      time.Duration(ticks) * clockTick,
		resident: kibibytes(string(status), "VmRSS:") * 1024,
		peak:     kibibytes(string(status), "VmHWM:") * 1024,
	}, nil
}

// kibibytes reads a line such as "VmRSS:	  1234 kB".
func kibibytes(status, name string) float64 {
	for line := range strings.Lines(status) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != name {
			continue
		}
		n, err := strconv.ParseFloat(fields[1], 64)
		if err == nil {
			return n
		}
	}
	return 0
}
