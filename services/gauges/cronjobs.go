package gauges

import (
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/executor"
)

// A cronCollector looks at the CronJobs when somebody reads the metrics. Replicas that do not lead know none.
type cronCollector struct {
	crons         CronJobs
	managed, next *prometheus.Desc
}

// RegisterCronJobs exports how many CronJobs the executor manages, and when the next run of any of them
// is due. The number of metrics does not grow with that of CronJobs.
func RegisterCronJobs(r prometheus.Registerer, crons CronJobs) error {
	return r.Register(&cronCollector{
		crons:   crons,
		managed: prometheus.NewDesc("jobpolicy_managed_cronjobs", "CronJobs that this executor manages.", nil, nil),
		next: prometheus.NewDesc("jobpolicy_next_schedule_time_seconds",
			"When the next run of any managed CronJob is due, in seconds since 1970; no value if there is no next run.", nil, nil),
	})
}

// Describe implements prometheus.Collector.
func (c *cronCollector) Describe(out chan<- *prometheus.Desc) {
	out <- c.managed
	out <- c.next
}

// Collect implements prometheus.Collector.
func (c *cronCollector) Collect(out chan<- prometheus.Metric) {
	managed := 0
	var next *timestamppb.Timestamp
	c.crons.EachCronJob(func(o executor.CronJobObservation) {
		managed++
		if at := o.Explanation.GetNextScheduleTime(); at != nil && (next == nil || at.AsTime().Before(next.AsTime())) {
			next = at
		}
	})
	out <- prometheus.MustNewConstMetric(c.managed, prometheus.GaugeValue, float64(managed))
	if next != nil {
		out <- prometheus.MustNewConstMetric(c.next, prometheus.GaugeValue, float64(next.GetSeconds()))
	}
}
