package metrics

import (
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

// Queues are the metrics of work queues, by the names that Kubernetes components use. It
// is a workqueue.MetricsProvider.
type Queues struct {
	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	waited, worked             *prometheus.HistogramVec
}

func newQueues(r *Registrar) *Queues {
	const subsystem = "workqueue"
	gauge := func(name, help string) *prometheus.GaugeVec { return r.Gauge(subsystem, name, help, "name") }
	counter := func(name, help string) *prometheus.CounterVec { return r.Counter(subsystem, name, help, "name") }
	histogram := func(name, help string) *prometheus.HistogramVec {
		return r.Histogram(subsystem, name, help, prometheus.ExponentialBuckets(10e-9, 10, 10), "name")
	}
	return &Queues{
		depth:      gauge("depth", "Items that are due and not being worked on."),
		adds:       counter("adds_total", "Items that became due."),
		waited:     histogram("queue_duration_seconds", "The time from when an item is due until it is worked on."),
		worked:     histogram("work_duration_seconds", "The time that the work on an item took."),
		unfinished: gauge("unfinished_work_seconds", "The time that all work in progress has taken so far."),
		longest:    gauge("longest_running_processor_seconds", "The time that the longest work in progress has taken so far."),
		retries:    counter("retries_total", "Items that were added again after a delay."),
	}
}

// The methods of workqueue.MetricsProvider.

func (m *Queues) NewDepthMetric(name string) workqueue.GaugeMetric {
	return m.depth.WithLabelValues(name)
}

func (m *Queues) NewAddsMetric(name string) workqueue.CounterMetric {
	return m.adds.WithLabelValues(name)
}

func (m *Queues) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return m.waited.WithLabelValues(name)
}

func (m *Queues) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return m.worked.WithLabelValues(name)
}

func (m *Queues) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return m.unfinished.WithLabelValues(name)
}

func (m *Queues) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return m.longest.WithLabelValues(name)
}

func (m *Queues) NewRetriesMetric(name string) workqueue.CounterMetric {
	return m.retries.WithLabelValues(name)
}
