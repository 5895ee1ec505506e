package virtual

import (
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"jobpolicy.dev/test/simulated/world/apiserver"
)

// hung is how long a case may take in real time; most take milliseconds.
const hung = 3 * time.Minute

// gcPercent is how much garbage may pile up (GOGC). A case needs little memory for a short
// time; most memory stays in use, for the schemes of all API groups.
const gcPercent = 1000

// quiet stops Kubernetes' packages from logging and handling errors: their error handlers
// count over all bubbles of the process, and sleep.
var quiet = sync.OnceFunc(func() {
	debug.SetGCPercent(gcPercent)
	apiserver.GrowStacks()
	utilruntime.ErrorHandlers = nil
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
})

// Bubble runs f in a bubble of its own. The name is that of a case, for the panic
// if the bubble does not end.
func Bubble(t *testing.T, name string, f func()) {
	quiet()
	watchdog := time.AfterFunc(hung, func() {
		stacks := make([]byte, 1<<20)
		panic(fmt.Sprintf("%s has not ended after %s\n%s", name, hung, stacks[:runtime.Stack(stacks, true)]))
	})
	defer watchdog.Stop()
	synctest.Test(t, func(*testing.T) { f() })
}

// Each does something for 0 to n-1, on all processors.
func Each(n int, do func(i int)) {
	next := make(chan int)
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}
