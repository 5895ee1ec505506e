package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/cronjob"
	"jobpolicy.dev/executor/internal/policy"
	"jobpolicy.dev/executor/internal/ttl"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/writes"
)

// CronJobs configures the controller of CronJobs.
type CronJobs struct {
	// Workers is how many CronJobs are reconciled at the same time. Default 5.
	Workers int
	// TimeZone is the IANA name of the time zone of schedules that name none. Default UTC.
	TimeZone string
}

// FinishedJobs configures the controller that deletes finished Jobs when their time to live is over.
type FinishedJobs struct {
	// Workers is how many finished Jobs are reconciled at the same time. Default 5.
	Workers int
	// ServerNow returns the API server's time as of its last answer, or the zero time
	// before the first answer. nil: only Now counts.
	ServerNow func() time.Time
}

// A part is one of the controllers of an Executor.
type part interface {
	Run(ctx context.Context) error
	Ready() error
	Queues() []QueueLoad
}

// group are controllers that run together.
type group struct {
	parts    []part
	crons    *cronjob.Controller // nil without Config.CronJobs.
	policies *policy.Policies    // nil without Config.JobPolicies.
}

// addPolicies makes the Policies. They run with the controller whose base this is, or as the caller says.
func (g *group) addPolicies(cfg *Config) (err error) {
	if cfg.JobPolicies == nil {
		return nil
	}
	g.policies, err = policy.New(policy.Config{
		Client: cfg.JobPolicies, Kubernetes: cfg.Client, Namespaces: cfg.Namespaces, Bounds: cfg.PolicyBounds, ClusterGroups: cfg.ClusterGroups,
		Scope: cfg.Scope(), Logger: cmp.Or(cfg.Logger, slog.Default()),
	})
	return err
}

// addBesideJobs makes the controllers of CronJobs and of finished Jobs, if they are wanted. They use
// jobs. shared is the configuration as it was before defaults. refusals are the refused writes for a
// Job; nil if it is not known.
func (g *group) addBesideJobs(cfg *Config, shared Common, jobs *controller.Informers, refusals func(*batchv1.Job) *writes.Refusals) (err error) {
	if c := cfg.CronJobs; c != nil {
		shared.Workers = c.Workers
		g.crons, err = cronjob.New(cronjob.Config{Config: shared, Jobs: jobs, Policies: g.policies, TimeZone: c.TimeZone, Shadow: cfg.Shadow})
		if err != nil {
			return err
		}
		g.parts = append(g.parts, g.crons)
	}
	if c := cfg.FinishedJobs; c != nil {
		shared.Workers = c.Workers
		finished, err := ttl.New(ttl.Config{Config: shared, Jobs: jobs, Policies: g.policies, ServerNow: c.ServerNow, Refusals: refusals, Shadow: cfg.Shadow})
		if err != nil {
			return err
		}
		g.parts = append(g.parts, finished)
	}
	return nil
}

// refusals are the refused writes for a Job; nil if the Job is not known. The controller that deletes
// finished Jobs adds its own.
func (e *Executor) refusals(job *batchv1.Job) *writes.Refusals {
	s, ok := e.jobs.Find(tracker.KeyOf(job))
	if !ok {
		return nil
	}
	return &s.Refusals
}

// Ready is nil once the caches of all controllers are filled, and ErrNotReady before that.
func (g *group) Ready() error {
	for _, p := range g.parts {
		if err := p.Ready(); err != nil {
			return err
		}
	}
	return nil
}

// Queues returns what the work queues have to do.
func (g *group) Queues() (all []QueueLoad) {
	for _, p := range g.parts {
		all = append(all, p.Queues()...)
	}
	return all
}

// Run runs the controllers until ctx ends, or one of them ends. Then they begin no more reconciles, and
// it waits at most Config.DrainPeriod until those in progress have finished and the events that are
// left are sent. It can be called once.
func (g *group) Run(ctx context.Context) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, len(g.parts))
	for _, p := range g.parts {
		go func() {
			defer stop()
			ended <- p.Run(running)
		}()
	}
	var errs []error
	for range g.parts {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// EachCronJob calls f with each managed CronJob, in no order; with none without Config.CronJobs.
func (g *group) EachCronJob(f func(CronJobObservation)) {
	if g.crons != nil {
		g.crons.EachCronJob(f)
	}
}

// BesideJobs is an Executor without the controller of Jobs: those are another controller's. It is made
// by NewBesideJobs and run once.
type BesideJobs struct {
	group
	jobs *controller.Informers
}

// NewBesideJobs returns what runs CronJobs, and deletes finished Jobs, as Config.CronJobs and
// Config.FinishedJobs say. What Config has for Jobs alone has no effect.
func NewBesideJobs(cfg Config) (*BesideJobs, error) {
	cfg.ManagedBy = cmp.Or(cfg.ManagedBy, ManagedBy)
	if cfg.Client == nil {
		return nil, controller.Missing("Client")
	}
	jobs, err := newJobInformer(&cfg, controller.WithoutManagedFields)
	if err != nil {
		return nil, err
	}
	b := &BesideJobs{jobs: jobs}
	if err := b.addPolicies(&cfg); err != nil {
		return nil, err
	}
	if err := b.addBesideJobs(&cfg, cfg.Common, jobs, nil); err != nil {
		return nil, err
	}
	if len(b.parts) == 0 {
		return nil, fmt.Errorf("%w: CronJobs or FinishedJobs is required", controller.ErrConfig)
	}
	return b, nil
}

// Run is like that of Executor.
func (b *BesideJobs) Run(ctx context.Context) error {
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go b.jobs.Run(watching) // Until the last reconcile has ended.
	if b.policies != nil {
		go b.policies.Run(watching)
	}
	return b.group.Run(ctx)
}

// newJobInformer makes the informer of Jobs.
func newJobInformer(cfg *Config, transform cache.TransformFunc) (*controller.Informers, error) {
	jobs := controller.NewInformers(cfg.Namespaces, func(namespace string) cache.SharedIndexInformer {
		return batchinformers.NewFilteredJobInformer(cfg.Client, namespace, 0, cache.Indexers{}, api.ConsistentList)
	})
	if err := jobs.SetTransform(transform); err != nil {
		return nil, fmt.Errorf("job transform: %w", err)
	}
	return jobs, nil
}
