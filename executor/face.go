package executor

import (
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/cronjob"
	"jobpolicy.dev/executor/internal/gang"
	"jobpolicy.dev/executor/internal/limit"
)

// The types of Config's fields.
type (
	// Common is the part of Config that the controllers of Jobs, of CronJobs and of finished Jobs share. Its
	// fields Client and Decider are required.
	Common = controller.Config
	// Decider is the policy engine, in this process or elsewhere.
	Decider = controller.Decider
	// Telemetry says where metrics, logs, decisions and spans go.
	Telemetry = controller.Telemetry
	// DecisionLog takes every decision.
	DecisionLog = controller.DecisionLog
	// WriteLimits bound how many writes are in flight: in all, and for a Job.
	WriteLimits = limit.Config
)

// APIServer is what is known of the API server: its version, and whether it serves gangs.
type APIServer = api.Server

// APIServerConfig is what an APIServer is made of.
type APIServerConfig = api.ServerConfig

// NewAPIServer registers the metric jobpolicy_kubernetes_minor. Run asks the API server.
func NewAPIServer(cfg APIServerConfig) (*APIServer, error) { return api.NewServer(cfg) }

// TypesMinor is the minor version of Kubernetes whose types this program was compiled with; 0: not known.
func TypesMinor() int { return api.TypesMinor() }

// Errors that callers tell apart.
var (
	// ErrConfig says that a Config cannot be used.
	ErrConfig = controller.ErrConfig
	// ErrStarted says that Run was called before.
	ErrStarted = controller.ErrStarted
	// ErrNotReady says that the caches are not filled yet.
	ErrNotReady = controller.ErrNotReady
)

// CronJobObservation is a CronJob with the last decision on it.
type CronJobObservation = cronjob.Observation

// QueueLoad is what a work queue has to do, and how much it has done.
type QueueLoad = controller.QueueLoad

// QueueLabel is the profiler label with the name of the queue for which a request is made. The
// context of each reconcile has it, so the transport of Config.Client can read it.
const QueueLabel = controller.QueueLabel

// WorkloadName is the name of the Workload that is created for a Job.
func WorkloadName(job *batchv1.Job) string { return gang.WorkloadName(job) }

// PodGroupName is the name of the PodGroup of a Workload's pod group template.
func PodGroupName(workload, template string) string { return gang.PodGroupName(workload, template) }
