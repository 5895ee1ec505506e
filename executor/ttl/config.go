package ttl

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/wallclock"
)

// Config is what a Controller is made of. Client, Decider, Jobs and ManagedBy are
// required; the zero value of every other field stands for its default.
type Config struct {
	Client  kubernetes.Interface
	Decider Decider
	// Events is what events are written with. One with a rate limit of its own takes
	// nothing from the other writes. Default: Client.
	Events typedcorev1.EventsGetter
	// Jobs is an informer of the Jobs of all namespaces. Somebody else runs it; New
	// adds an index, so it must not run yet.
	Jobs cache.SharedIndexInformer

	// ManagedBy is the spec.managedBy of our own Jobs.
	ManagedBy string
	// ReplaceBuiltin extends the care to all Jobs of the cluster.
	ReplaceBuiltin bool

	// Workers is how many Jobs are looked at at the same time. Default 5.
	Workers int
	// APIBackoff and MaxAPIBackoff bound the delay after a failure, Job by Job.
	// Defaults 1 s and 1 min.
	APIBackoff, MaxAPIBackoff time.Duration
	// DecisionTimeout bounds one call of the Decider. Default 10 s.
	DecisionTimeout time.Duration
	// DrainPeriod bounds how long Run waits for deletions in progress. Default 20 s.
	DrainPeriod time.Duration
	// Now tells wall time, and may be set back and forward. Default time.Now.
	Now func() time.Time
	// ServerNow tells the API server's time, as of its last answer; the zero time
	// while nothing is known of it. nil: only Now counts.
	ServerNow func() time.Time

	// Registerer takes the metrics. nil: they are kept but not exported.
	Registerer prometheus.Registerer
	// Logger is used with its Context methods only. Default: slog.Default().
	Logger *slog.Logger
	// TracerProvider makes the spans. Default: the global one.
	TracerProvider trace.TracerProvider
}

// ErrConfig says that a Config cannot be used.
var ErrConfig = errors.New("invalid configuration of the TTL controller")

func (c *Config) complete() error {
	if c.Client == nil || c.Decider == nil || c.Jobs == nil || c.ManagedBy == "" {
		return fmt.Errorf("required are Client, Decider, Jobs and ManagedBy: %w", ErrConfig)
	}
	c.Workers = cmp.Or(c.Workers, 5)
	c.APIBackoff = cmp.Or(c.APIBackoff, time.Second)
	c.MaxAPIBackoff = cmp.Or(c.MaxAPIBackoff, time.Minute)
	c.DecisionTimeout = cmp.Or(c.DecisionTimeout, 10*time.Second)
	c.DrainPeriod = cmp.Or(c.DrainPeriod, 20*time.Second)
	c.Now = wallclock.New(c.Now)
	if c.Events == nil {
		c.Events = c.Client.CoreV1()
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return nil
}
