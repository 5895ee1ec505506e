package fakes

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/executor/internal/controller"
)

// Config is a controller's configuration with short backoffs, and without logs and spans.
func Config(client kubernetes.Interface, decider controller.Decider) controller.Config {
	return controller.Config{
		Client: client, Decider: decider, APIBackoff: 10 * time.Millisecond, MaxAPIBackoff: 50 * time.Millisecond,
		Telemetry: controller.Telemetry{Logger: slog.New(slog.DiscardHandler), TracerProvider: noop.NewTracerProvider()},
	}
}

// Run runs what a test needs until the test ends, and waits for its end.
func Run(t testing.TB, runs ...func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, run := range runs {
		all.Go(func() {
			if err := run(ctx); err != nil {
				t.Errorf("run: %v", err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		all.Wait()
	})
}

// Informing makes an informer's run function one for Run.
func Informing(run func(context.Context)) func(context.Context) error {
	return func(ctx context.Context) error {
		run(ctx)
		return nil
	}
}

// Eventually waits until the condition holds. It fails the test after 20 s.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
