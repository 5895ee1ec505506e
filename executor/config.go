package executor

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"jobpolicy.dev/executor/controller"
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

// Decider answers what is to become of a Job. Errors carry a gRPC status code,
// read with status.Code; the contract says what each of them asks of a caller.
type Decider interface {
	DecideJob(ctx context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error)
}

// Config is what an Executor is made of. Decider is required, and what controller.Config
// requires; Workers is how many Jobs are decided on at the same time, ManagedBy is
// ManagedBy by default. The zero value of every other field stands for its default.
type Config struct {
	controller.Config
	Decider Decider

	// MaxWrites is how many API writes are in flight at the same time, over all
	// Jobs; those of one namespace get three quarters at most. Default 64.
	// MaxJobWrites is how many of them one Job gets at most, and gets unless the API
	// server takes longer for it. Default DefaultJobWrites. LoneJobWrites is how many
	// it gets while no other Job is at work, if that is more. Default
	// DefaultLoneJobWrites.
	MaxWrites, MaxJobWrites, LoneJobWrites int

	// PodFailureBackoff and MaxPodFailureBackoff are handed to the engine.
	// 0: the engine's defaults, 10 s and 10 min.
	PodFailureBackoff, MaxPodFailureBackoff time.Duration
	// MaxPodChangesPerSync and MaxUncountedPods are handed to the engine.
	// 0: the engine's defaults, 500 each.
	MaxPodChangesPerSync, MaxUncountedPods int
	// MaxRows is how many finished pods one request lists at most. Default: enough
	// for two rounds of the ledger, and 99,000 of a Job with limits per index.
	MaxRows int
	// LeastRows is how many may be listed in any case: of a Job with limits per index
	// whatever MaxRows says, because its failed pods stay in the list until they are
	// replaced, and nothing else would be seen; and of every Job after the engine
	// refused a longer list. Default 1,000.
	LeastRows int

	// KeepStartTimeOnSuspend is handed to the engine: the start time of a Job
	// stays when it is suspended, as in a cluster without the gate
	// MutableSchedulingDirectivesForSuspendedJobs.
	KeepStartTimeOnSuspend bool
	// WorkloadWithJob lets pods that are of use only together be scheduled
	// together, by a Workload and a PodGroup for each such Job. The API server
	// has to serve scheduling.k8s.io/v1alpha2: without it, the caches never fill.
	WorkloadWithJob bool

	// SyncBatchPeriod is the shortest time between two rounds of a busy Job.
	// Default 200 ms. The first event of a quiet Job is acted on at once.
	SyncBatchPeriod time.Duration
	// StatusPeriod is the time between two status writes that record finished pods
	// of a busy Job, on average; what only counts may wait half a period more, and
	// what decides something is written at once. Default 1 s, that of the built-in
	// controller.
	StatusPeriod time.Duration
	// Resync makes every Job due this often even if nothing happens. 0: never.
	Resync time.Duration
	// SafetyLookReportsOnly lets the safety look, which finds Jobs that stand still
	// although there is something to do, count and log them only, and not help.
	SafetyLookReportsOnly bool
}

// ErrConfig says that a Config cannot be used.
var ErrConfig = controller.ErrConfig

func (c *Config) validate() error {
	c.ManagedBy = cmp.Or(c.ManagedBy, ManagedBy)
	switch {
	case c.Decider == nil:
		return fmt.Errorf("Decider is nil: %w", ErrConfig)
	case c.MaxWrites < 0 || c.MaxJobWrites < 0 || c.LoneJobWrites < 0:
		return fmt.Errorf("MaxWrites, MaxJobWrites and LoneJobWrites must not be negative: %w", ErrConfig)
	case c.MaxPodChangesPerSync < 0 || c.MaxUncountedPods < 0 || c.MaxRows < 0 || c.LeastRows < 0:
		return fmt.Errorf("MaxPodChangesPerSync, MaxUncountedPods, MaxRows and LeastRows must not be negative: %w", ErrConfig)
	case c.PodFailureBackoff < 0 || c.MaxPodFailureBackoff < 0 || c.SyncBatchPeriod < 0 || c.StatusPeriod < 0:
		return fmt.Errorf("PodFailureBackoff, MaxPodFailureBackoff, SyncBatchPeriod and StatusPeriod must not be negative: %w", ErrConfig)
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
