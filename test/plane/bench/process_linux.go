package bench

import "syscall"

// childAttributes ask the kernel to end a child when this process ends, however
// it does.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
