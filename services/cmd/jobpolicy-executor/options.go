package main

import (
	"errors"
	"time"

	"github.com/spf13/pflag"

	"jobpolicy.dev/executor"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	policyoptions "jobpolicy.dev/proto/options"
	"jobpolicy.dev/services/internal/decisionlog"
	"jobpolicy.dev/services/internal/kubeclient"
	"jobpolicy.dev/services/internal/servicemain"
	"jobpolicy.dev/services/internal/tlsfiles"
)

const name = "jobpolicy-executor"

const summary = `jobpolicy-executor runs Kubernetes Jobs: it watches them, asks the policy engine
what to do, and carries the engine's decisions out. By default it manages the Jobs
whose spec.managedBy names it, beside the built-in controller.

Traces go where the standard OTEL_* variables say; set OTEL_EXPORTER_OTLP_ENDPOINT
to turn them on.`

// Values of --engine and --engine-fallback that are not addresses.
const (
	embedded   = "embedded"
	noFallback = "none"
)

// Values of --on-second-controller.
const (
	secondReport    = "report"
	secondStandDown = "stand-down"
)

// Bounds that the contract sets.
const (
	minBackoff = time.Millisecond
	maxBackoff = 24 * time.Hour
	maxPods    = 100_000
)

// options are the command line.
type options struct {
	mode        modeOptions
	kube        kubeclient.Options
	engine      engineOptions
	certs       certificateOptions
	controllers controllerOptions
	jobs        jobOptions
	election    electionOptions
	log         decisionlog.Options

	httpAddress     string
	profiling       bool
	shutdownTimeout time.Duration
}

// engineOptions say which engine to ask.
type engineOptions struct {
	target   string
	fallback string
	timeout  time.Duration
	tls      tlsfiles.Client
}

// jobOptions say which Jobs to manage, and how.
type jobOptions struct {
	managedBy            string
	replaceBuiltin       bool
	concurrentSyncs      int
	podFailureBackoff    time.Duration
	maxPodFailureBackoff time.Duration
	syncBatchPeriod      time.Duration
	maxPodChanges        int
	maxUncountedPods     int
	maxUnseenPods        int
	undeclaredGroups     bool
	onSecondController   string
	policyLimits         []string
	gates                featureGates
}

// AddFlags implements servicemain.Options.
func (o *options) AddFlags(s *servicemain.Set) {
	o.kube.AddFlags(s.Group("Kubernetes API"))
	o.engine.addFlags(s.Group("Policy engine"))
	o.certs.addFlags(s.Group("Certificates of the engine and its callers"))
	controllers := s.Group("Controllers")
	o.mode.addFlags(controllers)
	o.controllers.addFlags(controllers)
	o.jobs.addFlags(s.Group("Jobs"))
	o.election.addFlags(s.Group("Leader election"))
	o.log.AddFlags(s.Group("Decision log"))

	serving := s.Group("Serving")
	serving.StringVar(&o.httpAddress, "http-address", "127.0.0.1:8082", "`Address` (host:port) to serve /healthz, /readyz, /metrics, /debug/decisions, /debug/cronjobs, /debug/page/ and, with --mode=shadow, /debug/differences on, in plaintext. What begins with /debug/ names Jobs and CronJobs, and answers only clients on the same machine. Empty: serve nothing.")
	serving.BoolVar(&o.profiling, "profiling", false, "Serve profiles under /debug/pprof/ on --http-address, to clients on the same machine.")
	serving.DurationVar(&o.shutdownTimeout, "shutdown-timeout", 20*time.Second, "How long reconciles in progress may take to finish after a signal.")
}

func (o *engineOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.target, "engine", "", "`Address` of the policy engine: host:port or any gRPC target (dns:///host:port spreads calls over all addresses of the name), or the word embedded to decide in this process. Required.")
	fs.StringVar(&o.fallback, "engine-fallback", noFallback, "What to do while the engine does not answer: none (wait and try again) or embedded (decide in this process).")
	fs.DurationVar(&o.timeout, "engine-timeout", 5*time.Second, "How long the engine may take to answer, including the wait for a connection.")
	o.tls.AddFlags(fs)
}

func (o *jobOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.managedBy, "managed-by", executor.ManagedBy, "Manage the Jobs whose spec.managedBy has this value, and the CronJobs whose annotation jobpolicy.dev/managed-by has it.")
	fs.BoolVar(&o.replaceBuiltin, "replace-builtin", false, "Also manage the Jobs, CronJobs and times to live that the built-in controllers would manage. Only for clusters where those are switched off.")
	fs.IntVar(&o.concurrentSyncs, "concurrent-job-syncs", 5, "How many Jobs are reconciled at the same time. Jobs whose decision is being carried out do not count.")
	fs.DurationVar(&o.podFailureBackoff, "pod-failure-backoff", 10*time.Second, "Delay before the first failed pod is replaced. It doubles with each further failure in a row. 1ms to 24h.")
	fs.DurationVar(&o.maxPodFailureBackoff, "max-pod-failure-backoff", 10*time.Minute, "The longest delay before a failed pod is replaced. --pod-failure-backoff to 24h.")
	fs.DurationVar(&o.syncBatchPeriod, "sync-batch-period", 200*time.Millisecond, "The shortest time between two reconciles of a busy Job; events meanwhile are handled together. The first event of a quiet Job is handled at once.")
	fs.IntVar(&o.maxPodChanges, "max-pod-changes-per-sync", 500, "How many pods one reconcile may create or delete. Of a busy NonIndexed Job, it creates at most half as many. 1 to 100000.")
	fs.IntVar(&o.maxUncountedPods, "max-uncounted-pods", 500, "How many finished pods a Job's status may list at once. 1 to 100000.")
	fs.BoolVar(&o.undeclaredGroups, "pod-groups-for-all-jobs", true, "With the feature gate WorkloadWithJob: also a Job without spec.scheduling gets a Workload and a PodGroup, as from the built-in controller. With false, such Jobs cost no more than without the gate, and their pods have no group.")
	fs.IntVar(&o.maxUnseenPods, "max-unseen-pods-per-hour", executor.DefaultMaxUnseenPods, "How many pods of one Job may be created in an hour without any of them being seen as the Job's own. A Job that reaches it creates no pod for an hour. 1 or more.")
	fs.StringVar(&o.onSecondController, "on-second-controller", secondReport, "What to do when another controller writes the status of a managed Job, or makes pods for it: report (metric, event, /readyz) or stand-down (also leave the Job alone until no managed Job was touched by another controller for 10 minutes).")
	fs.StringArrayVar(&o.policyLimits, "policy-limit", nil, "A limit that no JobPolicy passes, and no options in an annotation do: `FIELD=MIN:MAX`, of which MIN or MAX may be left out, such as job.ttlSecondsAfterFailed=3600: for a field with a number. Options beyond it are invalid. May be repeated.")
	fs.Var(&o.gates, "feature-gates", gatesUsage())
}

// Validate implements servicemain.Options.
func (o *options) Validate() error {
	errs := servicemain.Problems{o.kube.Validate(), o.engine.validate(), o.certs.validate(), o.controllers.validate(), o.jobs.validate(), o.election.validate(), o.log.Validate(), o.mode.validate(o)}
	errs.Require(o.shutdownTimeout > 0, "--shutdown-timeout must be above 0s, is %s", o.shutdownTimeout)
	return errors.Join(errs...)
}

func (o *engineOptions) validate() error {
	var errs servicemain.Problems
	errs.Require(o.target != "", "--engine is required: the policy engine's address, or embedded")
	errs.Require(o.target != embedded || !o.tls.IsSet(),
		"--engine=embedded excludes --engine-ca-file, --engine-cert-file, --engine-key-file, --engine-tls-secret, --engine-server-name and --engine-insecure")
	if o.tls.Secret != "" {
		_, err := parseSecret("--engine-tls-secret", o.tls.Secret)
		errs = append(errs, err)
	}
	errs.Require(o.fallback == noFallback || o.fallback == embedded, "--engine-fallback must be none or embedded, is %q", o.fallback)
	errs.Require(o.timeout > 0, "--engine-timeout must be above 0s, is %s", o.timeout)
	return errors.Join(append(errs, o.tls.Validate())...)
}

func (o *jobOptions) validate() error {
	var errs servicemain.Problems
	errs.Require(o.managedBy != "", "--managed-by must not be empty")
	errs.Require(o.onSecondController == secondReport || o.onSecondController == secondStandDown,
		"--on-second-controller must be report or stand-down, is %q", o.onSecondController)
	errs.Require(o.concurrentSyncs >= 1, "--concurrent-job-syncs must be at least 1, is %d", o.concurrentSyncs)
	errs.Require(o.podFailureBackoff >= minBackoff && o.podFailureBackoff <= maxBackoff,
		"--pod-failure-backoff must be between %s and %s, is %s", minBackoff, maxBackoff, o.podFailureBackoff)
	errs.Require(o.maxPodFailureBackoff >= o.podFailureBackoff && o.maxPodFailureBackoff <= maxBackoff,
		"--max-pod-failure-backoff must be between --pod-failure-backoff (%s) and %s, is %s", o.podFailureBackoff, maxBackoff, o.maxPodFailureBackoff)
	errs.Require(o.syncBatchPeriod > 0, "--sync-batch-period must be above 0s, is %s", o.syncBatchPeriod)
	errs.Require(o.maxPodChanges >= 1 && o.maxPodChanges <= maxPods,
		"--max-pod-changes-per-sync must be between 1 and %d, is %d", maxPods, o.maxPodChanges)
	errs.Require(o.maxUncountedPods >= 1 && o.maxUncountedPods <= maxPods,
		"--max-uncounted-pods must be between 1 and %d, is %d", maxPods, o.maxUncountedPods)
	_, err := o.policyBounds()
	errs.Require(err == nil, "--policy-limit: %v", err)
	errs.Require(o.maxUnseenPods >= 1, "--max-unseen-pods-per-hour must be at least 1, is %d", o.maxUnseenPods)
	return errors.Join(errs...)
}

// policyBounds are the limits of --policy-limit.
func (o *jobOptions) policyBounds() (bounds policyoptions.Bounds, err error) {
	bounds = policyoptions.Bounds{}
	for _, limit := range o.policyLimits {
		if err := bounds.Set(limit); err != nil {
			return nil, err
		}
	}
	return bounds, nil
}

// podGroups says which Jobs get a group for their pods.
func (o *jobOptions) podGroups() jobpolicyv1.PodGroups {
	switch {
	case !o.gates.workloadWithJob:
		return jobpolicyv1.PodGroups_POD_GROUPS_UNSPECIFIED
	case !o.undeclaredGroups:
		return jobpolicyv1.PodGroups_POD_GROUPS_DECLARED
	}
	return jobpolicyv1.PodGroups_POD_GROUPS_ALL
}
