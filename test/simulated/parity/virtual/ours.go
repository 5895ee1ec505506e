package virtual

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"jobpolicy.dev/engine"
	cronpolicy "jobpolicy.dev/engine/cronjob"
	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/shadow"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// ManagedBy is the value of spec.managedBy of the Jobs that our executor manages.
const ManagedBy = executor.ManagedBy

// An Engine is our policy engine, which may be unreachable.
type Engine struct {
	mu   sync.Mutex
	away bool
	// errors are those of requests that should not have been sent.
	errors []error
}

// SetAway makes the engine unreachable, or reachable again.
func (e *Engine) SetAway(away bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.away = away
}

// Err returns the errors of all requests that the engine has refused.
func (e *Engine) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return errors.Join(e.errors...)
}

func (e *Engine) reach() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.away {
		return status.Error(codes.Unavailable, "the engine is away")
	}
	return nil
}

func (e *Engine) refused(err error) error {
	if err == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.errors = append(e.errors, err)
	return status.Error(codes.InvalidArgument, err.Error())
}

// DecideJob implements executor.Decider.
func (e *Engine) DecideJob(_ context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	if err := e.reach(); err != nil {
		return nil, err
	}
	resp, err := engine.DecideJob(req)
	return resp, e.refused(err)
}

// DecideCronJob implements executor.Decider.
func (e *Engine) DecideCronJob(_ context.Context, req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
	if err := e.reach(); err != nil {
		return nil, err
	}
	resp, err := cronpolicy.Decide(req)
	return resp, e.refused(err)
}

// OurJobs is our executor of Jobs, in place of the built-in controller.
func OurJobs(e *Engine, log *slog.Logger) Program {
	return func(ctx context.Context, cfg *rest.Config) error {
		client, err := leanClient(cfg)
		if err != nil {
			return err
		}
		jobs, err := executor.New(executor.Config{
			Common: executor.Common{Decider: e, Client: client, ReplaceBuiltin: true, Telemetry: executor.Telemetry{Logger: log}},
		})
		if err != nil {
			return err
		}
		return jobs.Run(ctx)
	}
}

// ShadowJobs is our executor of Jobs in shadow mode, beside the built-in controller. It
// asks the engine and writes into the report.
func ShadowJobs(e executor.Decider, report *shadow.Report, log *slog.Logger) Program {
	return func(ctx context.Context, cfg *rest.Config) error {
		client, err := leanClient(cfg)
		if err != nil {
			return err
		}
		jobs, err := executor.New(executor.Config{
			Common: executor.Common{Decider: e, Client: client, Telemetry: executor.Telemetry{Logger: log}}, Shadow: report,
		})
		if err != nil {
			return err
		}
		return jobs.Run(ctx)
	}
}

// OurCronJobs are our controllers of CronJobs and of times to live, in place of the
// built-in ones.
func OurCronJobs(e *Engine, log *slog.Logger) Program {
	return e.cronJobs(log, nil)
}

// ShadowCronJobs are the same in shadow mode, beside the built-in controllers. They write
// into the report.
func ShadowCronJobs(e *Engine, report *shadow.Report, log *slog.Logger) Program {
	return e.cronJobs(log, report)
}

func (e *Engine) cronJobs(log *slog.Logger, report *shadow.Report) Program {
	return func(ctx context.Context, cfg *rest.Config) error {
		client, err := kubernetes.NewForConfig(cfg)
		if err != nil {
			return err
		}
		run, err := executor.NewBesideJobs(executor.Config{
			Common:   executor.Common{Decider: e, Client: client, ReplaceBuiltin: true, Telemetry: executor.Telemetry{Logger: log}},
			CronJobs: &executor.CronJobs{}, FinishedJobs: &executor.FinishedJobs{}, Shadow: report,
		})
		if err != nil {
			return err
		}
		return run.Run(ctx)
	}
}

// lean is the client that the executor's program makes: it decodes only the fields of pods
// that our executor reads.
type lean struct {
	kubernetes.Interface
	core typedcorev1.CoreV1Interface
}

// CoreV1 implements kubernetes.Interface.
func (l *lean) CoreV1() typedcorev1.CoreV1Interface { return l.core }

func leanClient(cfg *rest.Config) (kubernetes.Interface, error) {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	own := rest.CopyConfig(cfg)
	own.APIPath, own.GroupVersion = "/api", &corev1.SchemeGroupVersion
	own.NegotiatedSerializer = podcache.Serializer(rest.CodecFactoryForGeneratedClient(scheme.Scheme, scheme.Codecs).WithoutConversion())
	core, err := rest.RESTClientForConfigAndClient(own, &http.Client{Transport: cfg.Transport})
	if err != nil {
		return nil, err
	}
	return &lean{client, typedcorev1.New(core)}, nil
}
