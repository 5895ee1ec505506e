package executor

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"jobpolicy.dev/executor/controller"
	"jobpolicy.dev/executor/shadow"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// ManagedBy is the spec.managedBy of Jobs for this executor, unless configured
// otherwise.
const ManagedBy = "jobpolicy.dev/executor"

// Defaults of Config.MaxJobWrites and Config.LoneJobWrites.
const (
	DefaultJobWrites     = 16
	DefaultLoneJobWrites = 48
)

// Decider decides what becomes of a Job. Errors carry a gRPC status code, read with
// status.Code; the contract says what each code asks of a caller.
type Decider interface {
	DecideJob(ctx context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error)
}

// Config is what an Executor is made of. Client and Decider are required. ManagedBy is
// the constant ManagedBy by default. Workers is how many Jobs are reconciled at the same
// time. The zero value of every other field stands for its default.
type Config struct {
	controller.Config
	Decider Decider

	// MaxWrites is how many API writes are in flight at the same time. One namespace
	// gets three quarters of them at most. Default 64.
	// MaxJobWrites is how many of them one Job gets at most; it gets fewer while they
	// slow the API server down. Default DefaultJobWrites.
	// LoneJobWrites replaces MaxJobWrites, if it is more, while no other Job has
	// writes. Default DefaultLoneJobWrites.
	MaxWrites, MaxJobWrites, LoneJobWrites int

	// PodFailureBackoff and MaxPodFailureBackoff are settings of the engine.
	// 0: the engine's defaults, 10 s and 10 min.
	PodFailureBackoff, MaxPodFailureBackoff time.Duration
	// MaxPodChangesPerSync and MaxUncountedPods are settings of the engine.
	// 0: the engine's defaults, 500 each.
	MaxPodChangesPerSync, MaxUncountedPods int
	// MaxRows is how many finished pods one request lists at most. Default: enough
	// for two statuses, and 99,000 for a Job with limits per index.
	MaxRows int
	// LeastRows is how many finished pods a request may list in any case: for a Job with
	// limits per index even if MaxRows is less, because its failed pods stay in the list
	// until they are replaced and would hide all others; and for every Job after the
	// engine has refused a longer list. Default 1,000.
	LeastRows int

	// KeepStartTimeOnSuspend is a setting of the engine: a Job keeps its start time
	// when it is suspended, as in a cluster without the feature gate
	// MutableSchedulingDirectivesForSuspendedJobs.
	KeepStartTimeOnSuspend bool
	// WorkloadWithJob creates a Workload and a PodGroup for each Job whose pods are of
	// use only together, so that they are scheduled together. The API server must serve
	// scheduling.k8s.io/v1alpha2: without it, the caches never fill.
	WorkloadWithJob bool

	// SyncBatchPeriod is the shortest time between two reconciles of a busy Job.
	// Default 200 ms. After the first event of a quiet Job, it is reconciled at once.
	SyncBatchPeriod time.Duration
	// StatusPeriod is the average time between two status writes of a busy Job that
	// record finished pods. A status that only counts may wait half a period more. A
	// status that decides something is written at once. Default 1 s, as in the built-in
	// controller.
	StatusPeriod time.Duration
	// Resync is how often every Job is reconciled even if nothing happens. 0: never.
	Resync time.Duration
	// SafetyLookReportsOnly: the safety look, which finds Jobs that stand still although
	// there is something to do, only counts and logs them. It does not enqueue them.
	SafetyLookReportsOnly bool
	// Shadow takes the differences between the engine's decisions and what the built-in
	// controller does with the Jobs that are its own. With it, the Executor only compares: it
	// writes nothing, and ManagedBy, ReplaceBuiltin and WorkloadWithJob do not count.
	Shadow *shadow.Report
}

// ErrConfig says that a Config cannot be used.
var ErrConfig = controller.ErrConfig

func (c *Config) validate() error {
	c.ManagedBy = cmp.Or(c.ManagedBy, ManagedBy)
	switch {
	case c.Decider == nil:
		return fmt.Errorf("no Decider: %w", ErrConfig)
	case c.MaxWrites < 0 || c.MaxJobWrites < 0 || c.LoneJobWrites < 0:
		return fmt.Errorf("negative MaxWrites, MaxJobWrites or LoneJobWrites, want 0 or more: %w", ErrConfig)
	case c.MaxPodChangesPerSync < 0 || c.MaxUncountedPods < 0 || c.MaxRows < 0 || c.LeastRows < 0:
		return fmt.Errorf("negative MaxPodChangesPerSync, MaxUncountedPods, MaxRows or LeastRows, want 0 or more: %w", ErrConfig)
	case c.PodFailureBackoff < 0 || c.MaxPodFailureBackoff < 0 || c.SyncBatchPeriod < 0 || c.StatusPeriod < 0:
		return fmt.Errorf("negative PodFailureBackoff, MaxPodFailureBackoff, SyncBatchPeriod or StatusPeriod, want 0 or more: %w", ErrConfig)
	}
	return nil
}

func (c *Config) setDefaults() {
	c.MaxWrites = cmp.Or(c.MaxWrites, 64)
	c.MaxJobWrites = cmp.Or(c.MaxJobWrites, DefaultJobWrites)
	c.LoneJobWrites = cmp.Or(c.LoneJobWrites, DefaultLoneJobWrites)
	c.LeastRows = cmp.Or(c.LeastRows, leastRows)
	c.SyncBatchPeriod = cmp.Or(c.SyncBatchPeriod, 200*time.Millisecond)
	c.StatusPeriod = cmp.Or(c.StatusPeriod, time.Second)
}
