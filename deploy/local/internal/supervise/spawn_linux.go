package supervise

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// spawns feeds the one thread that starts children. The kernel sends the
// parent-death signal when the *thread* that forked ends, not when its process
// does (prctl(2)). A Go thread may end early: when some goroutine returns while
// locked to it. So children are started from a goroutine that keeps its thread
// for as long as the program lives.
var (
	spawns     = make(chan func())
	startSpawn = sync.OnceFunc(func() { go spawnLoop() })
)

func spawnLoop() {
	runtime.LockOSThread()
	for spawn := range spawns {
		spawn()
	}
}

func startOnLastingThread(cmd *exec.Cmd) error {
	startSpawn()
	done := make(chan error, 1)
	spawns <- func() { done <- cmd.Start() }
	return <-done
}
