package shadow

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/internal/clock"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/telemetry"
)

// maxListed bounds how many differences are listed. The metrics count all of them.
const maxListed = 1000

// Config is what a Report is made of. The zero value of a field stands for its default.
type Config struct {
	// Rest is how long nothing must happen to an object before the engine is asked about
	// it, and how long the engine must then answer the same. Default DefaultRest.
	Rest time.Duration
	// Registerer takes the metrics. nil: they are kept but not exported.
	Registerer prometheus.Registerer
	// Logger gets a warning for each difference. Default: slog.Default().
	Logger *slog.Logger
	// Now returns wall time. Default time.Now.
	Now func() time.Time
}

// A Report has the differences that were found. All methods may be called concurrently.
type Report struct {
	cfg         Config
	comparisons *prometheus.CounterVec
	found       *prometheus.CounterVec
	open        *prometheus.GaugeVec

	mu      sync.Mutex
	entries []*Entry // In the order in which they were found; at most maxListed.
	current map[subject][]*Entry
}

// An Entry is a difference that was found.
type Entry struct {
	Object
	Difference
	// Since is when it was found. Until is when the engine and the other controller agreed
	// again or the object was gone; zero while the difference exists.
	Since, Until time.Time
}

// NewReport registers the metrics.
func NewReport(cfg Config) (*Report, error) {
	if cfg.Rest < 0 {
		return nil, fmt.Errorf("negative Rest %v, want 0 or more: %w", cfg.Rest, controller.ErrConfig)
	}
	cfg.Rest = cmp.Or(cfg.Rest, DefaultRest)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	cfg.Now = clock.New(cfg.Now)
	m := &telemetry.Registrar{To: cfg.Registerer}
	r := &Report{
		cfg:         cfg,
		comparisons: m.Counter("jobpolicy", "shadow_comparisons_total", "Comparisons of objects, by result: same, or different if the engine would act.", "object", "result"),
		found:       m.Counter("jobpolicy", "shadow_differences_total", "Differences found: steps that the engine would take and the other controller has not, by the rule that decided.", "object", "kind", "rule"),
		open:        m.Gauge("jobpolicy", "shadow_open_differences", "Differences that exist now.", "object", "kind", "rule"),
		current:     map[subject][]*Entry{},
	}
	r.exportZeros()
	return r, m.Err
}

// exportZeros exports the series that can be foreseen before there is a difference.
func (r *Report) exportZeros() {
	for object, kinds := range map[string][]Kind{
		TypeJob:         {CreatePods, DeletePods, ReleasePods, WriteStatus, Rejected},
		TypeCronJob:     {CreateJob, DeleteJob, EditCronJob, WriteStatus, Rejected},
		TypeFinishedJob: {DeleteJob, Rejected},
	} {
		r.comparisons.WithLabelValues(object, same)
		r.comparisons.WithLabelValues(object, different)
		for _, kind := range kinds {
			r.found.WithLabelValues(object, string(kind), noRule)
			r.open.WithLabelValues(object, string(kind), noRule)
		}
	}
}

// Results of a comparison.
const (
	same      = "same"
	different = "different"
)

// A subject is an object as one controller sees it. The same Job is one subject for the Job
// controller, and another one for the TTL controller.
type subject struct {
	objectType string
	uid        types.UID
}

func (o Object) subject() subject { return subject{o.Type, o.UID} }

// asked records the differences in the engine's answer about an object at rest.
func (r *Report) asked(ctx context.Context, o Object, found []Difference) {
	result := same
	if len(found) > 0 {
		result = different
	}
	r.comparisons.WithLabelValues(o.Type, result).Inc()
	r.mu.Lock()
	defer r.mu.Unlock()
	var lasting []*Entry
	for _, e := range r.current[o.subject()] {
		i := slices.IndexFunc(found, func(d Difference) bool { return d.Kind == e.Kind && d.Rule == e.Rule })
		if i < 0 {
			r.end(e)
			continue
		}
		e.Detail, e.Why = found[i].Detail, found[i].Why
		found = slices.Delete(slices.Clone(found), i, i+1)
		lasting = append(lasting, e)
	}
	for _, d := range found {
		lasting = append(lasting, r.begin(ctx, o, d))
	}
	r.remember(o.subject(), lasting)
}

// gone ends the differences of an object.
func (r *Report) gone(of subject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.current[of] {
		r.end(e)
	}
	r.remember(of, nil)
}

func (r *Report) remember(of subject, lasting []*Entry) {
	if len(lasting) == 0 {
		delete(r.current, of)
		return
	}
	r.current[of] = lasting
}

// begin adds a difference. If the list is full, it first drops the oldest difference that
// has ended, or else the oldest one.
func (r *Report) begin(ctx context.Context, o Object, d Difference) *Entry {
	e := &Entry{Object: o, Difference: d, Since: r.cfg.Now()}
	if len(r.entries) >= maxListed {
		i := max(0, slices.IndexFunc(r.entries, func(e *Entry) bool { return !e.Until.IsZero() }))
		r.entries = slices.Delete(r.entries, i, i+1)
	}
	r.entries = append(r.entries, e)
	r.found.WithLabelValues(o.Type, string(d.Kind), d.Rule).Inc()
	r.open.WithLabelValues(o.Type, string(d.Kind), d.Rule).Inc()
	r.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "difference found", slog.String("object", o.Type),
		slog.String("namespace", o.Namespace), slog.String("name", o.Name), slog.String("uid", string(o.UID)),
		slog.String("kind", string(d.Kind)), slog.String("rule", d.Rule), slog.String("detail", d.Detail), slog.String("why", d.Why))
	return e
}

func (r *Report) end(e *Entry) {
	e.Until = r.cfg.Now()
	r.open.WithLabelValues(e.Type, string(e.Kind), e.Rule).Dec()
}

// Entries are the differences that are listed: first those that still exist, then the
// others, each from the newest to the oldest.
func (r *Report) Entries() []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Entry, 0, len(r.entries))
	for _, e := range slices.Backward(r.entries) {
		list = append(list, *e)
	}
	slices.SortStableFunc(list, func(a, b Entry) int {
		return cmp.Compare(ended(a), ended(b))
	})
	return list
}

func ended(e Entry) int {
	if e.Until.IsZero() {
		return 0
	}
	return 1
}
