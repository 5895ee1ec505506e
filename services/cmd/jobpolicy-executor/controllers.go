package main

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/validation"

	"jobpolicy.dev/engine/zone"
	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/shadow"
	policyoptions "jobpolicy.dev/proto/options"
	"jobpolicy.dev/services/internal/probes"
	"jobpolicy.dev/services/internal/servicemain"
	"jobpolicy.dev/services/internal/views"
)

// Names of the controllers, as in kube-controller-manager.
const (
	jobController     = "job-controller"
	cronJobController = "cronjob-controller"
	ttlController     = "ttl-after-finished-controller"
	everyController   = "*"
)

var knownControllers = []string{jobController, cronJobController, ttlController}

// controllerOptions say which controllers to run besides that of Jobs.
type controllerOptions struct {
	names       []string
	namespaces  []string
	cronWorkers int
	ttlWorkers  int
	timeZone    string
	groups      []string
}

func (o *controllerOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.names, "controllers", []string{everyController}, "Controllers to run: * for all, a name to run that one, -name not to run it. Names: "+strings.Join(knownControllers, ", ")+". The first one always runs.")
	fs.StringSliceVar(&o.namespaces, "namespaces", nil, "Watch only these namespaces, separated by commas, so that Roles in them suffice. Everything in others is left alone, and annotations of namespaces are not read. Empty: all.")
	fs.IntVar(&o.cronWorkers, "concurrent-cron-job-syncs", 5, "How many CronJobs are reconciled at the same time.")
	fs.IntVar(&o.ttlWorkers, "concurrent-ttl-after-finished-syncs", 5, "How many finished Jobs are reconciled at the same time.")
	fs.StringArrayVar(&o.groups, "cluster-group", nil, "A group of CronJobs that is one of the cluster: `NAME=N`, such as reports=3. The CronJobs of all namespaces (with --namespaces: of these) whose options name it as cronJob.group share N active runs, first come, first served; N takes the place of what their options say. A run that is asked for by hand waits in the same line. May be repeated.")
	fs.StringVar(&o.timeZone, "cron-job-time-zone", "UTC", "Time zone (an IANA name) of CronJobs without spec.timeZone.")
}

func (o *controllerOptions) validate() error {
	var errs servicemain.Problems
	for _, name := range o.names {
		plain := strings.TrimPrefix(name, "-")
		errs.Require(name == everyController || slices.Contains(knownControllers, plain),
			"--controllers: no controller is called %q; there are %s", plain, strings.Join(knownControllers, ", "))
	}
	errs.Require(o.enabled(jobController), "--controllers: %s cannot be left out", jobController)
	for _, namespace := range o.namespaces {
		wrong := validation.IsDNS1123Label(namespace)
		errs.Require(len(wrong) == 0, "--namespaces must be names of namespaces, has %q: %s", namespace, strings.Join(wrong, "; "))
	}
	errs.Require(o.cronWorkers >= 1, "--concurrent-cron-job-syncs must be at least 1, is %d", o.cronWorkers)
	errs.Require(o.ttlWorkers >= 1, "--concurrent-ttl-after-finished-syncs must be at least 1, is %d", o.ttlWorkers)
	_, err := o.clusterGroups()
	errs.Require(err == nil, "--cluster-group: %v", err)
	// The engine reads the name, so it must be in the engine's database.
	_, err = zone.Load(o.timeZone)
	errs.Require(err == nil && o.timeZone != "", "--cron-job-time-zone must be an IANA name such as Europe/Berlin, is %q", o.timeZone)
	return errors.Join(errs...)
}

// clusterGroups are the groups of --cluster-group.
func (o *controllerOptions) clusterGroups() (policyoptions.ClusterGroups, error) {
	groups := policyoptions.ClusterGroups{}
	for _, group := range o.groups {
		if err := groups.Set(group); err != nil {
			return nil, err
		}
	}
	return groups, nil
}

// enabled reads the list as kube-controller-manager does: the first entry that names the
// controller decides; if none does, * enables it.
func (o *controllerOptions) enabled(name string) bool {
	for _, entry := range o.names {
		if entry == name {
			return true
		}
		if entry == "-"+name {
			return false
		}
	}
	return slices.Contains(o.names, everyController)
}

// controllers are the controllers of an executor, with what runs beside them.
type controllers struct {
	run   []func(context.Context) error
	ready func() error // nil once the caches of all are filled
	// queues returns what the work queues have to do.
	queues func() []probes.QueueLoad
	pages  map[string]http.Handler
	// second reports another controller on the same Jobs. It always passes, because neither
	// a restart of the executor nor another replica would help.
	second probes.Check
	crons  views.CronJobs // nil without that controller
	server *executor.APIServer
	// standBy fills the pod cache before Run; nil: Run fills it.
	standBy func(ctx context.Context, start func(func()))
}

func (o *options) newControllers(client *clients, jobs *executor.Executor, shared executor.Common, report *shadow.Report) (*controllers, error) {
	c := &controllers{
		run: []func(context.Context) error{jobs.Run}, ready: jobs.Ready, queues: func() []probes.QueueLoad { return queues(jobs) },
		pages: map[string]http.Handler{"GET /debug/decisions": views.Decisions(jobs)},
		second: probes.Check{
			Name: "second-controller", Note: jobs.SecondController, Run: func(context.Context) error { return nil },
		},
	}
	if o.election.warm {
		c.standBy = jobs.StandBy
	}
	if report != nil {
		c.pages["GET /debug/differences"] = report.Handler()
	}
	certs, err := o.certs.newIssuer(client.secrets, shared.Registerer, shared.Logger)
	if err != nil {
		return nil, err
	}
	if certs != nil {
		c.run = append(c.run, certs.Run)
	}
	if o.controllers.enabled(cronJobController) {
		c.pages["GET /debug/cronjobs"] = views.CronJobTable(jobs)
		c.crons = jobs
	}
	return c, nil
}

// queues are the loads of an executor's work queues.
func queues(jobs *executor.Executor) (loads []probes.QueueLoad) {
	for _, load := range jobs.Queues() {
		loads = append(loads, probes.QueueLoad(load))
	}
	return loads
}

// configure says which controllers to run besides that of Jobs.
func (o *controllerOptions) configure(cfg *executor.Config, serverNow func() time.Time) {
	if o.enabled(cronJobController) {
		cfg.CronJobs = &executor.CronJobs{Workers: o.cronWorkers, TimeZone: o.timeZone}
	}
	if o.enabled(ttlController) {
		cfg.FinishedJobs = &executor.FinishedJobs{Workers: o.ttlWorkers, ServerNow: serverNow}
	}
}

// Run runs all controllers until ctx ends, or one of them ends. With an election, it is a term
// as the leader.
func (c *controllers) Run(ctx context.Context) error {
	c.server.Ask()
	group, running := errgroup.WithContext(ctx)
	for _, run := range c.run {
		group.Go(func() error {
			if err := run(running); err != nil || ctx.Err() != nil {
				return err
			}
			return errEndedEarly
		})
	}
	return group.Wait()
}

func (c *controllers) caches() probes.Check {
	return probes.Check{Name: "caches", Run: func(context.Context) error { return c.ready() }}
}
