package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// NewRegistry returns a registry with the metrics of the Go runtime and of the process,
// and with one that names the program and its version.
func NewRegistry(s Service) *prometheus.Registry {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "jobpolicy_build_info",
		Help:        "Always 1; the labels say which program and version is running.",
		ConstLabels: prometheus.Labels{"program": s.Name, "version": s.Version},
	})
	build.Set(1)
	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		build,
	)
	return r
}
