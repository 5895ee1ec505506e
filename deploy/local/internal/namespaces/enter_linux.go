package namespaces

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"jobpolicy.dev/deploy/local/internal/supervise"
)

// kinds are the namespaces of a process, by their names in /proc. The one of
// mounts comes last: the others are found by a path.
var kinds = map[string]int{
	"net": unix.CLONE_NEWNET,
	"pid": unix.CLONE_NEWPID,
	"ipc": unix.CLONE_NEWIPC,
	"uts": unix.CLONE_NEWUTS,
	"mnt": unix.CLONE_NEWNS,
}

// Enter makes a thread in the namespaces whose first process is pid. Children
// that it starts, and connections that it makes, are inside.
func Enter(pid int) (*supervise.Thread, error) {
	files := map[string]*os.File{}
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	for kind := range kinds {
		f, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
		if err != nil {
			return nil, fmt.Errorf("enter namespaces: %w", err)
		}
		files[kind] = f
	}
	return supervise.StartThread(func() error {
		// A thread that shares its working directory with others may not leave the
		// namespace of its mounts.
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return fmt.Errorf("enter namespaces: %w", err)
		}
		for kind, f := range files {
			if err := unix.Setns(int(f.Fd()), kinds[kind]); err != nil {
				return fmt.Errorf("enter %s namespace: %w", kind, err)
			}
		}
		return nil
	})
}
