package executor

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"

	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/podcache"
)

// SecondControllerEventReason is the reason of the event on a Job on which another controller works, too.
const SecondControllerEventReason = "SecondController"

// recently is how old a status write of another controller may be when the executor begins to
// watch, so that Note mentions it. That controller may still run. It may also have been switched
// off since then, so the write causes no event and no error in the log.
const recently = time.Minute

// SecondControllerQuiet is how long another controller must touch no managed Job to count as gone. Then Jobs
// that were left alone are reconciled again.
const SecondControllerQuiet = 10 * time.Minute

// After a burst, there is at most one event and one log line in eventPeriod.
const (
	eventBurst  = 10
	eventPeriod = 10 * time.Second
)

// What another controller did: values of the label what.
const (
	wroteStatus = "status"
	tookPod     = "pod"
)

// secondControllerConfig is what a secondController is made of.
type secondControllerConfig struct {
	// FieldManager is the name that the API server records for writes of the executor.
	// Empty: other controllers are not noticed.
	FieldManager string
	// StandDown: leave a Job alone while another controller works on it.
	StandDown bool

	Recorder   record.EventRecorder
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

// A secondController notices another controller that works on Jobs which the executor
// manages. That is mostly the built-in Job controller, which somebody left on or an upgrade
// brought back. Two controllers create each pod twice and overwrite each other's status.
//
// The API server records under which name each client writes, its field manager. Two things
// show another controller: a status of a Job that another field manager wrote, and a pod of
// a Job that another field manager created or adopted. Both count only while the executor
// watches. All replicas of the executor have one name, and what happened before this
// process began to watch does not count. So neither a restart, nor a second replica, nor
// Jobs that were moved from another controller are taken for a second controller.
//
// A nil secondController, that of shadow mode, looks for none.
type secondController struct {
	cfg        secondControllerConfig
	writes     *prometheus.CounterVec
	stoodDown  *prometheus.GaugeVec
	eventLimit flowcontrol.PassiveRateLimiter

	mu   sync.Mutex
	jobs map[types.UID]bool // with writes by another controller; true: the event and the log said so
	last sighting
	// recentWrite is the newest write by another controller that the first list shows, if it was
	// recent, and recentJob is the Job with that status.
	recentWrite *metav1.ManagedFieldsEntry
	recentJob   string
}

// sighting is a write by another controller.
type sighting struct {
	manager, did string
	at           time.Time // elapsed time of this process
}

// newSecondController returns a secondController. It registers the metrics.
func newSecondController(cfg secondControllerConfig) (*secondController, error) {
	r := &telemetry.Registrar{To: cfg.Registerer}
	d := &secondController{
		cfg:        cfg,
		writes:     r.Counter("jobpolicy", "second_controller_writes_total", "Writes of another controller that the executor saw: statuses of managed Jobs (status), and pods that it created for them or adopted (pod).", "what"),
		stoodDown:  r.Gauge("jobpolicy", "jobs_stood_down", "Managed Jobs that the executor leaves alone because another controller works on them."),
		eventLimit: flowcontrol.NewTokenBucketPassiveRateLimiter(float32(1/eventPeriod.Seconds()), eventBurst),
		jobs:       map[types.UID]bool{},
	}
	for _, what := range []string{wroteStatus, tookPod} {
		d.writes.WithLabelValues(what) // Exported as 0 before the first one.
	}
	d.stoodDown.WithLabelValues()
	return d, r.Err
}

// countedFields are the fields of a status that only a Job controller writes. Others may add
// conditions.
var countedFields = [][]byte{
	[]byte(`"f:active"`), []byte(`"f:ready"`), []byte(`"f:terminating"`), []byte(`"f:succeeded"`), []byte(`"f:failed"`),
	[]byte(`"f:startTime"`), []byte(`"f:completionTime"`), []byte(`"f:uncountedTerminatedPods"`),
}

// Trim removes the managed fields of a Job. It keeps one entry, without fields: the other
// field manager that wrote the status last. The Job must not be written with that entry.
func (d *secondController) Trim(job *batchv1.Job) {
	entries := job.ManagedFields
	job.ManagedFields = nil
	if d == nil || d.cfg.FieldManager == "" {
		return
	}
	for i := range entries {
		e := &entries[i]
		if e.Subresource != "status" || e.Manager == d.cfg.FieldManager || !countsPods(e.FieldsV1) {
			continue
		}
		if before := otherWriter(job); before != nil && !before.Time.Before(e.Time) {
			continue
		}
		job.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: e.Manager, Operation: e.Operation, Subresource: e.Subresource, Time: e.Time}}
	}
}

func countsPods(fields *metav1.FieldsV1) bool {
	if fields == nil {
		return true // Trimmed before.
	}
	return slices.ContainsFunc(countedFields, func(f []byte) bool { return bytes.Contains(fields.GetRawBytes(), f) })
}

// otherWriter returns the entry that Trim left.
func otherWriter(job *batchv1.Job) *metav1.ManagedFieldsEntry {
	if job == nil || len(job.ManagedFields) == 0 {
		return nil
	}
	return &job.ManagedFields[0]
}

// JobSeen compares two versions of a managed Job, as the informer showed them one after the
// other. Both were trimmed. old is nil if the Job appeared while the executor watched.
func (d *secondController) JobSeen(ctx context.Context, old, job *batchv1.Job) {
	now, before := otherWriter(job), otherWriter(old)
	if d == nil || now == nil || (before != nil && before.Manager == now.Manager && !before.Time.Before(now.Time)) {
		return
	}
	d.sighted(ctx, job, wroteStatus, sighting{manager: now.Manager, did: "it wrote the status"})
}

// JobListed looks at a managed Job of the first list, which was trimmed.
func (d *secondController) JobListed(job *batchv1.Job, now time.Time) {
	entry := otherWriter(job)
	if d == nil || entry == nil || entry.Time == nil || now.Sub(entry.Time.Time) > recently {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.recentWrite == nil || d.recentWrite.Time.Before(entry.Time) {
		d.recentWrite, d.recentJob = entry, job.Namespace+"/"+job.Name
	}
}

// PodSeen takes a pod of a managed Job that the Job got while the executor watched.
func (d *secondController) PodSeen(ctx context.Context, job *batchv1.Job, pod *podcache.Pod) {
	owner, _ := pod.Controller()
	if d == nil || d.cfg.FieldManager == "" || owner.SetBy == "" || owner.SetBy == d.cfg.FieldManager {
		return
	}
	d.sighted(ctx, job, tookPod, sighting{manager: owner.SetBy, did: "it created or adopted pod " + pod.Name})
}

// sighted counts what another controller did. Once for each Job it also says so, in the log
// and as an event on the Job. If the limit of events has no room, the next sighting on that
// Job tries again.
func (d *secondController) sighted(ctx context.Context, job *batchv1.Job, what string, s sighting) {
	d.writes.WithLabelValues(what).Inc()
	s.at = time.Now()
	d.mu.Lock()
	told := d.jobs[job.UID]
	tell := !told && d.eventLimit.TryAccept()
	d.jobs[job.UID] = told || tell
	s.did += " of " + job.Namespace + "/" + job.Name
	d.last = s
	d.countStoodDown()
	d.mu.Unlock()
	if !tell {
		return
	}
	consequence := "both act on it, so pods may be created twice"
	if d.cfg.StandDown {
		consequence = "this controller leaves the Job alone"
	}
	d.cfg.Recorder.Eventf(job, corev1.EventTypeWarning, SecondControllerEventReason, "%s works on this Job, too: %s; %s", s.manager, s.did, consequence)
	d.cfg.Logger.ErrorContext(ctx, telemetry.LogSecondController,
		append(telemetry.JobAttrs(job), slog.String("fieldManager", s.manager), slog.String("did", s.did), slog.Bool("standDown", d.cfg.StandDown))...)
}

// countStoodDown sets the gauge. d.mu must be held.
func (d *secondController) countStoodDown() {
	if d.cfg.StandDown {
		d.stoodDown.WithLabelValues().Set(float64(len(d.jobs)))
	}
}

// StandDown returns how long to leave the Job alone at least, or 0. If another controller
// has touched no managed Job for SecondControllerQuiet, it is taken for gone.
func (d *secondController) StandDown(uid types.UID) time.Duration {
	if d == nil || !d.cfg.StandDown {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.jobs[uid]; !known {
		return 0
	}
	if left := SecondControllerQuiet - time.Since(d.last.at); left > 0 {
		return left
	}
	clear(d.jobs)
	d.countStoodDown()
	return 0
}

// Forget drops a Job that is gone.
func (d *secondController) Forget(uid types.UID) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.jobs, uid)
	d.countStoodDown()
}

// Note says in one line what was seen of other controllers.
func (d *secondController) Note() string {
	if d == nil {
		return "not looked for"
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last.manager == "" {
		if d.recentWrite != nil {
			return fmt.Sprintf("none seen since the start; %s wrote the status of %s less than a minute before: make sure that it is switched off", d.recentWrite.Manager, d.recentJob)
		}
		return "none seen"
	}
	ago := time.Since(d.last.at).Round(time.Second)
	if ago > SecondControllerQuiet {
		return fmt.Sprintf("none for %s: until then %s worked on managed Jobs", ago, d.last.manager)
	}
	return fmt.Sprintf("WARNING: %s works on managed Jobs, too: %s, %s ago", d.last.manager, d.last.did, ago)
}
