package executor

import (
	"cmp"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/client-go/dynamic"

	"jobpolicy.dev/executor/shadow"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

// ManagedBy is the default of Config.ManagedBy: the spec.managedBy of Jobs for this
// executor.
const ManagedBy = "jobpolicy.dev/executor"

// Defaults of Config.Writes.PerJob and Config.Writes.Alone.
const (
	DefaultJobWrites     = 16
	DefaultLoneJobWrites = 48
)

// Config is what an Executor is made of. Decider and Client are required. The default of
// ManagedBy is the constant ManagedBy. Workers is how many Jobs are read and decided on at
// the same time. The zero value of every other field stands for its default.
type Config struct {
	Common

	// Writes bounds how many API writes are in flight at the same time. A Job gets fewer than
	// Writes.PerJob while its writes slow the API server down. Defaults: Total 64, PerJob
	// DefaultJobWrites, Alone DefaultLoneJobWrites.
	Writes WriteLimits

	// Settings are sent to the engine with every request. With pod_groups, the executor creates
	// Workloads and PodGroups for Jobs. The API server must then serve scheduling.k8s.io/v1beta1;
	// see APIServer.
	// Default: the engine's defaults.
	Settings *jobpolicyv1.Settings
	// APIServer tells whether the API server serves gangs. While it does not, no pod of a gang is
	// created, and everything else goes on. nil: it does, and the caches wait until it does.
	APIServer *APIServer
	// JobPolicies reads JobPolicies, and writes their status; they need not be served. nil: who names one is
	// told that nobody reads it.
	JobPolicies dynamic.Interface
	// PolicyBounds are the operator's limits of the options of Jobs and CronJobs. They need JobPolicies.
	PolicyBounds options.Bounds
	// ClusterGroups are groups of CronJobs (CronJobOptions.group) that count the runs of all namespaces, or of
	// Namespaces, and how many may be active in each. They need JobPolicies.
	ClusterGroups options.ClusterGroups
	// Rows says how many finished pods a request lists.
	Rows RowLimits
	// MaxUnseenPods is how many pods of one Job may be created in an hour without any of them being
	// seen as the Job's own. A Job that reaches it creates no pod for an hour. Default
	// DefaultMaxUnseenPods.
	MaxUnseenPods int

	// SyncBatchPeriod is the shortest time between two reconciles of a busy Job.
	// Default 200 ms. After the first event of a quiet Job, it is reconciled at once.
	SyncBatchPeriod time.Duration
	// StatusPeriod is the average time between two status writes of a busy Job that record
	// finished pods. A status that only updates counts may wait half a period more. A status
	// that decides something is written at once. Default 1 s, as in the built-in controller.
	StatusPeriod time.Duration
	// FieldManager is the name that the API server records for the writes of Client: its user
	// agent up to the first slash. The executor uses it to recognize writes of
	// other controllers. Empty: it looks for none.
	FieldManager string
	// StandDown: leave a Job alone while another controller works on it.
	StandDown bool
	// MissedReconcilesReportOnly: a Job whose reconcile was missed is counted and logged, but not
	// enqueued. Such a Job is idle although there is something to do.
	MissedReconcilesReportOnly bool
	// CronJobs and FinishedJobs are the controllers to run besides that of Jobs. nil: it does not run.
	CronJobs     *CronJobs
	FinishedJobs *FinishedJobs
	// Shadow collects the differences between the engine's decisions and what the built-in
	// controller does with its Jobs. If it is set, the Executor only compares: it writes
	// nothing, and ManagedBy, ReplaceBuiltin and Settings.PodGroups have no effect.
	Shadow *shadow.Report
}

// RowLimits bound the list of finished pods in a request.
type RowLimits struct {
	// Max is how many finished pods a request lists at most. Pods that the status has recorded,
	// and the other unaccounted pods of a listed index, come on top of it. The default is the
	// larger of Least and twice Settings.MaxUncountedPods; for a Job with backoffLimitPerIndex it
	// is 99,000. A value above the default has no effect.
	Max int
	// Least is the smallest limit. After the engine has refused a list as too long, the executor
	// shortens it to Least at most. For a Job with backoffLimitPerIndex, Max is never below Least:
	// failed pods of such a Job stay in the list until they are replaced, and would hide all
	// others. Default 1,000.
	Least int
}

func (c *Config) validate() error {
	c.ManagedBy = cmp.Or(c.ManagedBy, ManagedBy)
	switch {
	case c.Writes.Total < 0 || c.Writes.PerJob < 0 || c.Writes.Alone < 0:
		return fmt.Errorf("negative Writes.Total, Writes.PerJob or Writes.Alone, want 0 or more: %w", ErrConfig)
	case c.Settings.GetMaxPodChanges() < 0 || c.Settings.GetMaxUncountedPods() < 0:
		return fmt.Errorf("negative Settings.MaxPodChanges or Settings.MaxUncountedPods, want 0 or more: %w", ErrConfig)
	case c.Rows.Max < 0 || c.Rows.Least < 0:
		return fmt.Errorf("negative Rows.Max or Rows.Least, want 0 or more: %w", ErrConfig)
	case c.MaxUnseenPods < 0:
		return fmt.Errorf("negative MaxUnseenPods, want 0 or more: %w", ErrConfig)
	case c.SyncBatchPeriod < 0 || c.StatusPeriod < 0:
		return fmt.Errorf("negative SyncBatchPeriod or StatusPeriod, want 0 or more: %w", ErrConfig)
	}
	return nil
}

func (c *Config) setDefaults() {
	c.Writes.Total = cmp.Or(c.Writes.Total, 64)
	c.Writes.PerJob = cmp.Or(c.Writes.PerJob, DefaultJobWrites)
	c.Writes.Alone = cmp.Or(c.Writes.Alone, DefaultLoneJobWrites)
	c.Settings = cmp.Or(proto.CloneOf(c.Settings), &jobpolicyv1.Settings{})
	c.Rows.Least = cmp.Or(c.Rows.Least, leastRows)
	c.MaxUnseenPods = cmp.Or(c.MaxUnseenPods, DefaultMaxUnseenPods)
	c.SyncBatchPeriod = cmp.Or(c.SyncBatchPeriod, 200*time.Millisecond)
	c.StatusPeriod = cmp.Or(c.StatusPeriod, time.Second)
}
