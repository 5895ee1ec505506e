package world

import (
	"flag"
	"log/slog"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"jobpolicy.dev/test/simulated/world/apiserver"
)

// prepare initializes what all worlds of a process share. None of it may be made inside
// a bubble, because it would belong to that bubble.
func prepare() {
	utilruntime.ErrorHandlers = nil // They log, and sleep.
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("logtostderr", "false")     // The names and
	_ = flags.Set("stderrthreshold", "FATAL") // values are good.
	klog.SetOutput(nowhere{})
	slog.SetDefault(slog.New(slog.DiscardHandler)) // Of podjob.Run.
	apiserver.GrowStacks()
	apiserver.New(apiserver.Options{})
}

// nowhere discards what client-go logs.
type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
