//go:build !linux

package bench

import "syscall"

// childAttributes: only Linux ends children with their parent.
func childAttributes() *syscall.SysProcAttr { return nil }
