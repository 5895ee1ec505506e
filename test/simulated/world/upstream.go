package world

import (
	"context"
	"errors"
	"slices"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/rest"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/test/simulated/parity/virtual"
)

// upstream is what stands in for an executor in worlds of Kubernetes' own controllers: those of
// Jobs, of CronJobs and of finished Jobs, in one process.
type upstream struct{ config *rest.Config }

// Run runs the controllers until ctx ends.
func (u upstream) Run(ctx context.Context) error {
	var both sync.WaitGroup
	var crons error
	both.Go(func() { crons = virtual.BuiltinCronJobs(ctx, u.config) })
	jobs := virtual.BuiltinJobs(ctx, u.config)
	both.Wait()
	return errors.Join(jobs, crons)
}

// foreignToUpstream are the steps that concern only our executors: their options, their lease, and
// their clocks, which a test can set.
var foreignToUpstream = []string{
	"set the clock", "set the policy", "ask for a run", "freeze", "hang for it", "delete the lease",
	"switch the built-in controller on", "switch the built-in controller off",
}

// forUpstream changes the plan so that Kubernetes' own controllers can play it: one process at a
// time, which manages what nobody else does, without options of ours and without an engine.
func (d *drawer) forUpstream() {
	p := d.p
	p.executor = executorPlan{upstream: true, replace: true, replicas: 1, zone: "Etc/UTC"}
	for _, j := range p.jobs {
		j.annotations = nil
		asUpstream(&j.spec)
	}
	for _, c := range p.crons {
		c.annotations, c.spec.Suspend = nil, nil
		asUpstream(&c.spec.JobTemplate.Spec)
	}
	p.steps = slices.DeleteFunc(p.steps, func(s *step) bool { return slices.Contains(foreignToUpstream, s.verb) })
	p.faults = slices.DeleteFunc(p.faults, func(f *fault) bool { return f.kind.ofEngine() || f.kind == altering })
}

// asUpstream gives a Job of ours to Kubernetes' own controller.
func asUpstream(spec *batchv1.JobSpec) {
	if spec.ManagedBy != nil && *spec.ManagedBy == executor.ManagedBy {
		spec.ManagedBy = nil
	}
}
