package executor

import (
	"context"
	"errors"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/controller"
	"jobpolicy.dev/executor/cronjob"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/ttl"
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
}

// addParts makes the controllers of CronJobs and of finished Jobs, if they are wanted. They use the
// informer of Jobs. shared is the configuration as it was before defaults.
func (e *Executor) addParts(cfg *Config, shared controller.Config) (err error) {
	e.parts = []part{e.base}
	if c := cfg.CronJobs; c != nil {
		shared.Workers = c.Workers
		e.crons, err = cronjob.New(cronjob.Config{Config: shared, Jobs: e.informer, TimeZone: c.TimeZone, Shadow: cfg.Shadow})
		if err != nil {
			return err
		}
		e.parts = append(e.parts, e.crons)
	}
	if c := cfg.FinishedJobs; c != nil {
		shared.Workers = c.Workers
		finished, err := ttl.New(ttl.Config{Config: shared, Jobs: e.informer, ServerNow: c.ServerNow, Refusals: e.refusals, Shadow: cfg.Shadow})
		if err != nil {
			return err
		}
		e.parts = append(e.parts, finished)
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

// Ready is nil once the caches of all controllers are filled, and controller.ErrNotReady before that.
func (e *Executor) Ready() error {
	for _, p := range e.parts {
		if err := p.Ready(); err != nil {
			return err
		}
	}
	return nil
}

// Run runs the controllers until ctx ends, or one of them ends; see controller.Controller.Run.
func (e *Executor) Run(ctx context.Context) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, len(e.parts))
	for _, p := range e.parts {
		go func() {
			defer stop()
			ended <- p.Run(running)
		}()
	}
	var errs []error
	for range e.parts {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// EachCronJob calls f with each managed CronJob, in no order; with none without Config.CronJobs.
func (e *Executor) EachCronJob(f func(cronjob.Observation)) {
	if e.crons != nil {
		e.crons.EachCronJob(f)
	}
}
