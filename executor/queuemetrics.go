package executor

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
)

// Names of the work queues: the label "name" of their metrics. They are
// upstream's.
const (
	jobQueue       = "job"
	orphanPodQueue = "job_orphan_pod"
)

// queueMetrics are what the work queues say of themselves, under the names that
// Kubernetes components use.
type queueMetrics struct {
	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	waited, worked             *prometheus.HistogramVec
}

func newQueueMetrics() queueMetrics {
	const subsystem = "workqueue"
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Subsystem: subsystem, Name: name, Help: help}, []string{"name"})
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Subsystem: subsystem, Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(10e-9, 10, 10),
		}, []string{"name"})
	}
	return queueMetrics{
		depth:      gauge("depth", "Items that are due and not yet worked on."),
		adds:       counter(subsystem, "adds_total", "Items that became due.", "name"),
		waited:     histogram("queue_duration_seconds", "The time from when an item is due until it is worked on."),
		worked:     histogram("work_duration_seconds", "The time that the work on an item took."),
		unfinished: gauge("unfinished_work_seconds", "The time that all work in progress has taken so far."),
		longest:    gauge("longest_running_processor_seconds", "The time that the longest work in progress has taken so far."),
		retries:    counter(subsystem, "retries_total", "Items that were put back, or put off.", "name"),
	}
}

func (m *queueMetrics) register(r prometheus.Registerer) error {
	for _, c := range []**prometheus.GaugeVec{&m.depth, &m.unfinished, &m.longest} {
		if err := registerOne(r, c); err != nil {
			return err
		}
	}
	for _, c := range []**prometheus.CounterVec{&m.adds, &m.retries} {
		if err := registerOne(r, c); err != nil {
			return err
		}
	}
	for _, c := range []**prometheus.HistogramVec{&m.waited, &m.worked} {
		if err := registerOne(r, c); err != nil {
			return err
		}
	}
	return nil
}

// The methods of workqueue.MetricsProvider.

func (m *queueMetrics) NewDepthMetric(name string) workqueue.GaugeMetric {
	return m.depth.WithLabelValues(name)
}

func (m *queueMetrics) NewAddsMetric(name string) workqueue.CounterMetric {
	return m.adds.WithLabelValues(name)
}

func (m *queueMetrics) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return m.waited.WithLabelValues(name)
}

func (m *queueMetrics) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return m.worked.WithLabelValues(name)
}

func (m *queueMetrics) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return m.unfinished.WithLabelValues(name)
}

func (m *queueMetrics) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return m.longest.WithLabelValues(name)
}

func (m *queueMetrics) NewRetriesMetric(name string) workqueue.CounterMetric {
	return m.retries.WithLabelValues(name)
}
