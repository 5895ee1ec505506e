//go:build !linux

package namespaces

import (
	"errors"

	"jobpolicy.dev/deploy/local/internal/supervise"
)

// CloneFlags are none where there are no namespaces.
const CloneFlags = 0

var errLinux = errors.New("Linux: no other system has these namespaces")

// Missing says that only Linux will do.
func Missing() error { return errLinux }

// Init fails.
func Init(string) error { return errLinux }

// Enter fails.
func Enter(int) (*supervise.Thread, error) { return nil, errLinux }
