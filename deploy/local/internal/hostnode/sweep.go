package hostnode

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Every process of a pod carries the pod's directory in its environment, unless it took care not to. That mark finds the
// ones that no process group finds: those that left it, and those whose leader died with the node.

func podMark(l layout) string { return podDirVar + "=" + l.pods() + "/" }

// sweep kills every process that carries the mark of a pod of this root directory.
func sweep(l layout) error {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return err
	}
	mark := []byte("\x00" + podMark(l))
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append([]byte{0}, env...), mark) {
			continue // ended meanwhile, another user's, or not ours
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		unix.Kill(pid, unix.SIGKILL)
	}
	return nil
}

// watchScript waits for the end of its input, which comes when the node dies, however it dies. Its argument is the mark,
// which must not stand in its own environment.
const watchScript = `cat >/dev/null
for e in $(grep -lsaF -- "$1" /proc/[0-9]*/environ); do
	p=${e#/proc/}
	kill -9 "${p%/environ}"
done
exit 0`

// watch starts a shell that does the same as sweep when this process is gone. Closing the result tells it to.
func watch(l layout) (io.Closer, error) {
	input, output, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer input.Close()
	cmd := exec.Command("sh", "-c", watchScript, "sh", podMark(l))
	cmd.Stdin = input
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the terminal's Ctrl-C is not for it
	if err := cmd.Start(); err != nil {
		output.Close()
		return nil, fmt.Errorf("start the watching shell: %w", err)
	}
	return &watcher{cmd, output}, nil
}

type watcher struct {
	cmd    *exec.Cmd
	output *os.File
}

// Close lets the shell sweep and waits for its end.
func (w *watcher) Close() error {
	w.output.Close()
	return w.cmd.Wait()
}

// lock takes a root directory for this process; the lock goes with the process.
func lock(l layout) (*os.File, error) {
	if err := os.MkdirAll(l.pods(), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(l.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s is in use by another node: %w", l.root, err)
	}
	return file, nil
}
