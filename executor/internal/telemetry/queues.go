package telemetry

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
)

// Names of the work queues: the label "name" of their metrics. They are
// upstream's.
const (
	JobQueue       = "job"
	OrphanPodQueue = "job_orphan_pod"
	CronJobQueue   = "cronjob"
	TTLQueue       = "ttl_jobs_to_delete"
)

// Queues are the metrics of work queues, by the names that Kubernetes components use.
//
// An item that is taken from a queue still waits for a slot, in turn with those of other
// namespaces. client-go's queue does not know that, and would count it as being worked on. So
// Queues takes from client-go, as its workqueue.MetricsProvider, only what becomes due, and Begin
// says when the work on an item begins and ends.
type Queues struct {
	depth          *prometheus.GaugeVec
	adds, retries  *prometheus.CounterVec
	waited, worked *prometheus.HistogramVec
	inProgress     *inProgress
}

const (
	queueSubsystem = "workqueue"
	queueLabel     = "name"
)

func newQueues(r *Registrar) *Queues {
	counter := func(name, help string) *prometheus.CounterVec {
		return r.Counter(queueSubsystem, name, help, queueLabel)
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return r.Histogram(queueSubsystem, name, help, prometheus.ExponentialBuckets(10e-9, 10, 10), queueLabel)
	}
	return &Queues{
		depth:      r.Gauge(queueSubsystem, "depth", "Items that are due and not being worked on.", queueLabel),
		adds:       counter("adds_total", "Items that became due."),
		waited:     histogram("queue_duration_seconds", "The time from when an item is due until it is worked on."),
		worked:     histogram("work_duration_seconds", "The time that the work on an item took."),
		retries:    counter("retries_total", "Items that were added again after a delay."),
		inProgress: register(r, newInProgress()),
	}
}

// Begin records that the work on an item begins, which was due since then. The caller calls end
// once, when the work has ended.
func (m *Queues) Begin(queue string, due time.Time) (end func()) {
	m.depth.WithLabelValues(queue).Dec()
	m.waited.WithLabelValues(queue).Observe(time.Since(due).Seconds())
	work := m.inProgress.begin(queue)
	return func() {
		m.inProgress.end(work)
		m.worked.WithLabelValues(queue).Observe(time.Since(work.began).Seconds())
	}
}

// inProgress exports how long the work in progress has taken, by queue. It computes that when it
// is asked.
type inProgress struct {
	unfinished, longest *prometheus.Desc

	mu     sync.Mutex
	queues map[string]map[*work]bool // empty for a queue at rest
}

// work is the work on one item.
type work struct {
	queue string
	began time.Time
}

func newInProgress() *inProgress {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName("", queueSubsystem, name), help, []string{queueLabel}, nil)
	}
	return &inProgress{
		unfinished: desc("unfinished_work_seconds", "The time that all work in progress has taken so far."),
		longest:    desc("longest_running_processor_seconds", "The time that the longest work in progress has taken so far."),
		queues:     map[string]map[*work]bool{},
	}
}

// add makes a queue known, so that it is exported while it is at rest.
func (p *inProgress) add(queue string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queues[queue] == nil {
		p.queues[queue] = map[*work]bool{}
	}
}

func (p *inProgress) begin(queue string) *work {
	w := &work{queue: queue, began: time.Now()}
	p.add(queue)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queues[queue][w] = true
	return w
}

func (p *inProgress) end(w *work) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.queues[w.queue], w)
}

// Describe implements prometheus.Collector.
func (p *inProgress) Describe(out chan<- *prometheus.Desc) { out <- p.unfinished; out <- p.longest }

// Collect implements prometheus.Collector.
func (p *inProgress) Collect(out chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for queue, works := range p.queues {
		var sum, longest time.Duration
		for w := range works {
			age := time.Since(w.began)
			sum, longest = sum+age, max(longest, age)
		}
		out <- prometheus.MustNewConstMetric(p.unfinished, prometheus.GaugeValue, sum.Seconds(), queue)
		out <- prometheus.MustNewConstMetric(p.longest, prometheus.GaugeValue, longest.Seconds(), queue)
	}
}

// onlyIncrements leaves the decrements to Queues.Begin.
type onlyIncrements struct{ prometheus.Gauge }

// Dec implements workqueue.GaugeMetric.
func (onlyIncrements) Dec() {}

// ignored is a metric that Queues.Begin has.
type ignored struct{}

// Observe implements workqueue.HistogramMetric.
func (ignored) Observe(float64) {}

// Set implements workqueue.SettableGaugeMetric.
func (ignored) Set(float64) {}

// The methods of workqueue.MetricsProvider.

func (m *Queues) NewDepthMetric(name string) workqueue.GaugeMetric {
	m.inProgress.add(name)
	return onlyIncrements{m.depth.WithLabelValues(name)}
}

func (m *Queues) NewAddsMetric(name string) workqueue.CounterMetric {
	return m.adds.WithLabelValues(name)
}

func (m *Queues) NewLatencyMetric(name string) workqueue.HistogramMetric {
	m.waited.WithLabelValues(name)
	return ignored{}
}

func (m *Queues) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	m.worked.WithLabelValues(name)
	return ignored{}
}

func (m *Queues) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric {
	return ignored{}
}

func (m *Queues) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return ignored{}
}

func (m *Queues) NewRetriesMetric(name string) workqueue.CounterMetric {
	return m.retries.WithLabelValues(name)
}
