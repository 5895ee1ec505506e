package hostnode

import (
	"os/exec"
	"syscall"
	"testing"

	"jobpolicy.dev/deploy/local/must"
)

// stray starts a process that carries the mark of a root directory, in a session of its own.
func stray(t *testing.T, l layout) <-chan error {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.Env = []string{"A=b", podDirVar + "=" + l.pod("uid-1")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	must.Succeed(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { cmd.Process.Kill() })
	return ended
}

func TestSweepKillsMarkedProcessesOfItsRootOnly(t *testing.T) {
	ours, other := layout{t.TempDir()}, layout{t.TempDir()}
	a, b := stray(t, ours), stray(t, other)
	must.Succeed(t, sweep(ours))
	receive(t, a, "end of the marked process")
	select {
	case <-b:
		t.Error("the process of another root directory was killed")
	default:
	}
}

func TestWatchingShellSweepsWhenItsInputEnds(t *testing.T) {
	ours, other := layout{t.TempDir()}, layout{t.TempDir()}
	w, err := watch(ours)
	must.Succeed(t, err)
	a, b := stray(t, ours), stray(t, other)
	if err := w.Close(); err != nil {
		t.Errorf("the shell did not end well: %v", err)
	}
	receive(t, a, "end of the marked process")
	select {
	case <-b:
		t.Error("the process of another root directory was killed")
	default:
	}
}

func TestRootDirectoryIsTakenByOneNode(t *testing.T) {
	l := layout{t.TempDir()}
	first, err := lock(l)
	must.Succeed(t, err)
	if _, err := lock(l); err == nil {
		t.Fatal("a second node got the same root directory")
	}
	first.Close()
	again, err := lock(l)
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	again.Close()
}
