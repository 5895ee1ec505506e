package supervise

import (
	"errors"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// childAttributes leave the parent-death signal out for a child in another
// process namespace. It cannot see the id of its parent, and Go takes that for a
// sign that the parent is dead. Such a child dies with the first process of its
// namespace.
func childAttributes(c Command) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true, Cloneflags: c.Cloneflags}
	if c.Thread == nil {
		attributes.Pdeathsig = syscall.SIGKILL
	}
	return attributes
}

// Thread is one operating system thread that lives until End. The kernel sends
// the parent-death signal when the *thread* that forked ends, not when its
// process does (prctl(2)), and a Go thread may end early: when some goroutine
// returns while locked to it. So children are started from a thread that lasts.
// A child also inherits the namespaces of the thread that forked it.
type Thread struct {
	work chan func()
	end  chan struct{}
	once sync.Once // closes end
}

// errEnded is what Do returns after End.
var errEnded = errors.New("the thread has ended")

// StartThread makes a thread and runs prepare on it. When that fails, the
// thread is gone again.
func StartThread(prepare func() error) (*Thread, error) {
	t := &Thread{work: make(chan func()), end: make(chan struct{})}
	ready := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and return locked: the thread ends with the goroutine
		err := prepare()
		ready <- err
		if err != nil {
			return
		}
		for {
			select {
			case work := <-t.work:
				work()
			case <-t.end:
				return
			}
		}
	}()
	return t, <-ready
}

// Do runs work on the thread and returns its error. Once the thread has ended, it runs
// nothing and returns an error, too.
func (t *Thread) Do(work func() error) (err error) {
	done := make(chan struct{})
	select {
	case t.work <- func() { defer close(done); err = work() }:
		<-done
		return err
	case <-t.end:
		return errEnded
	}
}

// End ends the thread, after the work that it does at the moment.
func (t *Thread) End() { t.once.Do(func() { close(t.end) }) }

// mainThread starts the children that name no thread. It ends with the program.
var mainThread = sync.OnceValue(func() *Thread {
	t, _ := StartThread(func() error { return nil })
	return t
})

func startOnLastingThread(cmd *exec.Cmd, t *Thread) error {
	if t == nil {
		t = mainThread()
	}
	return t.Do(cmd.Start)
}
