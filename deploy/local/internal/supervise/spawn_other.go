//go:build unix && !linux

package supervise

import (
	"os/exec"
	"syscall"
)

// childAttributes cannot ask for a parent-death signal here: only Linux has
// one. An orderly end still stops every child.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

func startOnLastingThread(cmd *exec.Cmd) error { return cmd.Start() }
