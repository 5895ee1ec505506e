package namespaces

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// CloneFlags make the namespaces. The control groups' namespace stays that of
// the machine: the container runtime needs their real paths.
const CloneFlags = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// errNotFirst: Init changes mounts, which must not be those of the machine.
var errNotFirst = errors.New("namespaces: this process is not the first of a process namespace")

// Init is the first process in the namespaces: it sets them up and then reaps
// what becomes its child, until SIGTERM. The process must have been started
// with CloneFlags. configFile is what [Config.Save] has written.
func Init(configFile string) error {
	if os.Getpid() != 1 {
		return errNotFirst
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	c, err := load(configFile)
	if err != nil {
		return err
	}
	if err := c.setUp(); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.Root, readyFile), nil, 0o600); err != nil {
		return err
	}
	reap(ended)
	return nil
}

// reap waits for the processes whose parents have ended, as those of the
// containers' shims do at once: they become children of the first process. It
// starts when this process has no children of its own any more, which belong to
// os/exec.
func reap(ended <-chan os.Signal) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGCHLD)
	for {
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if pid <= 0 && err != unix.EINTR {
				break
			}
		}
		select {
		case <-changed:
		case <-ended:
			return
		}
	}
}

func (c Config) setUp() error {
	if err := c.Cgroup.Join(); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(c.Hostname)); err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	if err := c.mount(); err != nil {
		return err
	}
	return c.configureNetwork()
}
