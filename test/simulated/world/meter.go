package world

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/services/gauges"
)

// A reading is what the metrics of an executor say, by their names and reasons.
type reading map[string]float64

// metricsOf are the metrics of an executor, as its program exports them.
func metricsOf(e *executor.Executor) (*prometheus.Registry, error) {
	registry := prometheus.NewRegistry()
	if err := gauges.RegisterJobs(registry, e, e); err != nil {
		return nil, err
	}
	return registry, gauges.RegisterCronJobs(registry, e)
}

// readsEvery is how often metrics are read. In worlds that last days it is less often.
func (p *plan) readsEvery() time.Duration {
	return max(41*time.Second+37*time.Nanosecond, (p.calm+p.settle)/80)
}

// readMetrics reads the metrics of the executors from time to time, as a monitoring system does.
func (w *world) readMetrics() {
	w.after(w.plan.readsEvery(), func() {
		w.fleet.readMetrics()
		w.readMetrics()
	})
}

func (f *fleet) readMetrics() {
	f.mu.Lock()
	running := slices.Clone(f.running)
	f.mu.Unlock()
	for _, p := range running {
		if p.metrics == nil {
			continue // Something else stands in for the executor.
		}
		got, err := read(p.metrics)
		if err != nil {
			f.w.broken("run", "the metrics of "+p.name+" cannot be read: "+err.Error())
			continue
		}
		f.w.judge.judgeMetrics(p.name, got, time.Now())
	}
}

func read(from prometheus.Gatherer) (reading, error) {
	families, err := from.Gather()
	got := reading{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			got[name] = m.GetGauge().GetValue()
		}
	}
	return got, err
}
