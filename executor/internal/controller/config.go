package controller

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

	"jobpolicy.dev/executor/internal/clock"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Decider is the policy engine, in this process or elsewhere: it decides what becomes of Jobs and
// CronJobs. Its methods must be safe for concurrent use, and must return when ctx ends. Errors carry
// a gRPC status code (see status.Code); the contract says what a caller must do for each code.
type Decider interface {
	DecideJob(ctx context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error)
	DecideCronJob(ctx context.Context, req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error)
}

// Config is the part of a controller's configuration that all controllers have.
// Decider, Client and ManagedBy are required. The zero value of every other field stands for
// its default.
type Config struct {
	Decider Decider
	// Client reads and writes objects. With the serializer of package newerfields, in its clients of
	// batch and of core, no field of a template is lost if the API server is newer than this program.
	Client kubernetes.Interface
	// Events writes events. Give it a rate limit of its own, so that events do not
	// delay other writes. Default: Client.
	Events typedcorev1.EventsGetter

	// ManagedBy is the name by which users give objects to this controller.
	ManagedBy string
	// ReplaceBuiltin: the built-in controller is switched off, and objects that name
	// no manager are managed here.
	ReplaceBuiltin bool

	// Namespaces are the namespaces whose objects are watched. None: all. With them the
	// client needs no rights beyond these namespaces, and the annotations of namespaces are
	// not read.
	Namespaces []string

	// Workers is how many keys are reconciled at the same time. For the Job controller, it is
	// only how many Jobs are read and decided on at the same time. Default 5.
	Workers int
	// APIBackoff is the delay after a first failure. It doubles with each failure in a
	// row, up to MaxAPIBackoff. Defaults 1 s and 1 min.
	APIBackoff, MaxAPIBackoff time.Duration
	// DecisionTimeout bounds one call of the engine. Default 10 s.
	DecisionTimeout time.Duration
	// DrainPeriod bounds how long Run waits for reconciles in progress and for events
	// when its context has ended. Default 20 s.
	DrainPeriod time.Duration
	// Now returns wall time. The clock may be set back and forward at any moment.
	// Default time.Now. It is called concurrently.
	Now func() time.Time

	Telemetry
}

// Telemetry says where metrics, logs, decisions and spans go.
type Telemetry struct {
	// Registerer takes the metrics. nil: they are kept but not exported.
	Registerer prometheus.Registerer
	// DecisionLog takes every decision. nil: there is no log.
	DecisionLog DecisionLog
	// Logger is used with its Context methods only. Default: slog.Default().
	Logger *slog.Logger
	// TracerProvider makes the spans. Default: the global one.
	TracerProvider trace.TracerProvider
}

// ErrConfig says that a configuration cannot be used.
var ErrConfig = errors.New("invalid configuration")

// Scope says which objects the configuration makes managed.
func (c *Config) Scope() Scope {
	return Scope{ManagedBy: c.ManagedBy, ReplaceBuiltin: c.ReplaceBuiltin}
}

// Missing is the ErrConfig of a required field that is not set.
func Missing(field string) error { return fmt.Errorf("no %s: %w", field, ErrConfig) }

func (c *Config) validate() error {
	switch {
	case c.Decider == nil:
		return Missing("Decider")
	case c.Client == nil:
		return Missing("Client")
	case c.ManagedBy == "":
		return Missing("ManagedBy")
	case c.Workers < 0:
		return fmt.Errorf("negative Workers %d, want 0 or more: %w", c.Workers, ErrConfig)
	case c.APIBackoff < 0 || c.MaxAPIBackoff < 0 || c.DecisionTimeout < 0 || c.DrainPeriod < 0:
		return fmt.Errorf("negative APIBackoff, MaxAPIBackoff, DecisionTimeout or DrainPeriod, want 0 or more: %w", ErrConfig)
	}
	return nil
}

func (c *Config) setDefaults() {
	c.Workers = cmp.Or(c.Workers, 5)
	c.APIBackoff = cmp.Or(c.APIBackoff, time.Second)
	c.MaxAPIBackoff = cmp.Or(c.MaxAPIBackoff, time.Minute)
	c.DecisionTimeout = cmp.Or(c.DecisionTimeout, 10*time.Second)
	c.DrainPeriod = cmp.Or(c.DrainPeriod, 20*time.Second)
	c.Now = clock.New(c.Now)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Events == nil {
		c.Events = c.Client.CoreV1()
	}
}
