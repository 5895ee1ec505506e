//go:build unix && !linux

package supervise

import (
	"errors"
	"os/exec"
	"syscall"
)

// childAttributes cannot ask for a parent-death signal here: only Linux has
// one. An orderly end still stops every child.
func childAttributes(Command) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// Thread is a thread of its own to start children on; only Linux has use for it.
type Thread struct{}

// StartThread fails: threads with namespaces of their own need Linux.
func StartThread(func() error) (*Thread, error) {
	return nil, errors.ErrUnsupported
}

// Do runs work.
func (*Thread) Do(work func() error) error { return work() }

// End does nothing.
func (*Thread) End() {}

func startOnLastingThread(cmd *exec.Cmd, _ *Thread) error { return cmd.Start() }
