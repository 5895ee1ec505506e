package cronjob

import (
	"cmp"
	"context"
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
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Decider answers what is to become of a CronJob. Errors carry a gRPC status
// code, read with status.Code; the contract says what each asks of a caller.
type Decider interface {
	DecideCronJob(ctx context.Context, req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error)
}

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

	// ManagedBy is the value of AnnotationManagedBy that makes a CronJob ours.
	ManagedBy string
	// ReplaceBuiltin makes CronJobs ours too that name nobody.
	ReplaceBuiltin bool

	// Workers is how many CronJobs have a round at the same time. Default 5.
	Workers int
	// TimeZone is the zone of schedules without one, an IANA name. Default UTC.
	TimeZone string
	// APIBackoff and MaxAPIBackoff bound the delay after a round failed. Defaults
	// 1 s and 1 min.
	APIBackoff, MaxAPIBackoff time.Duration
	// DecisionTimeout bounds one call of the Decider. Default 10 s.
	DecisionTimeout time.Duration
	// DrainPeriod bounds how long Run waits for rounds in progress. Default 20 s.
	DrainPeriod time.Duration
	// Now tells wall time, and may be set back and forward. Default time.Now.
	Now func() time.Time

	// Registerer takes the metrics. nil: they are kept but not exported.
	Registerer prometheus.Registerer
	// Logger is used with its Context methods only. Default: slog.Default().
	Logger *slog.Logger
	// TracerProvider makes the spans. Default: the global one.
	TracerProvider trace.TracerProvider
}

// ErrConfig says that a Config cannot be used.
var ErrConfig = errors.New("invalid configuration of the CronJob controller")

func (c *Config) validate() error {
	switch {
	case c.Client == nil:
		return fmt.Errorf("no client: %w", ErrConfig)
	case c.Decider == nil:
		return fmt.Errorf("no decider: %w", ErrConfig)
	case c.Jobs == nil:
		return fmt.Errorf("no informer of Jobs: %w", ErrConfig)
	case c.ManagedBy == "":
		return fmt.Errorf("ManagedBy is empty: %w", ErrConfig)
	}
	return nil
}

func (c *Config) setDefaults() {
	c.Workers = cmp.Or(c.Workers, 5)
	c.APIBackoff = cmp.Or(c.APIBackoff, time.Second)
	c.MaxAPIBackoff = cmp.Or(c.MaxAPIBackoff, time.Minute)
	c.DrainPeriod = cmp.Or(c.DrainPeriod, 20*time.Second)
	c.DecisionTimeout = cmp.Or(c.DecisionTimeout, 10*time.Second)
	c.Now = wallclock.New(c.Now)
	if c.Events == nil {
		c.Events = c.Client.CoreV1()
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
}
