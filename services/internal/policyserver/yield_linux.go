package policyserver

import "syscall"

// yieldThread lets threads that wait for this processor run first. Otherwise Linux lets them wait
// for a time slice, 3 ms or more.
func yieldThread() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) } // cannot fail
