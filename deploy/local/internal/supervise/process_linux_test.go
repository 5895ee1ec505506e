package supervise

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"jobpolicy.dev/deploy/local/must"
)

func TestChildDiesWithAKilledSupervisor(t *testing.T) {
	parent := exec.Command(os.Args[0], filepath.Join(t.TempDir(), "log"))
	parent.Env = append(os.Environ(), helperEnv+"=parent")
	output, err := parent.StdoutPipe()
	must.Succeed(t, err)
	must.Succeed(t, parent.Start())
	line, err := bufio.NewReader(output).ReadString('\n')
	must.Succeed(t, err)
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("the helper printed %q", line)
	}
	t.Cleanup(func() {
		if alive(child) {
			syscall.Kill(child, syscall.SIGKILL)
		}
	})
	if !alive(child) {
		t.Fatal("the child does not run while its supervisor does")
	}
	must.Succeed(t, parent.Process.Kill())
	parent.Wait()
	eventually(t, func() bool { return !alive(child) }, "the child outlived its supervisor")
}

// alive reports whether a process runs; a zombie, whose new parent has not
// reaped it yet, does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, afterName, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(afterName, "Z")
}

func TestChildOutlivesTheThreadThatAskedForIt(t *testing.T) {
	type result struct {
		p      *Process
		err    error
		thread int
	}
	results := make(chan result)
	go func() {
		runtime.LockOSThread() // and return locked: the thread ends with the goroutine
		p, err := Start(helperCommand(filepath.Join(t.TempDir(), "log"), "answer"))
		results <- result{p, err, syscall.Gettid()}
	}()
	r := <-results
	if r.err != nil {
		t.Fatal(r.err)
	}
	t.Cleanup(func() { r.p.Kill() })
	waitForLine(t, r.p, "ready")
	if r.thread != os.Getpid() { // the first thread of a process stays as a zombie
		task := fmt.Sprintf("/proc/self/task/%d", r.thread)
		eventually(t, func() bool { _, err := os.Stat(task); return err != nil }, "the thread did not end")
	}
	if err := r.p.Signal(syscall.SIGUSR1); err != nil {
		t.Fatalf("the child is gone: %v", err)
	}
	waitForLine(t, r.p, "alive")
}

// A connection may ask for a socket while the cluster ends.
func TestAThreadThatHasEndedRunsNothing(t *testing.T) {
	thread, err := StartThread(func() error { return nil })
	must.Succeed(t, err)
	stop := make(chan struct{})
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = thread.Do(func() error { return nil }) // fails once the thread has ended
				}
			}
		})
	}
	thread.End()
	close(stop)
	users.Wait()
	if err := thread.Do(func() error { t.Error("it ran"); return nil }); err == nil {
		t.Error("no error after the end")
	}
}
