package telemetry

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// All controllers of a process count together, under one name.
func TestControllersShareTheirMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	for _, queue := range []string{JobQueue, CronJobQueue} {
		m, err := NewShared(registry)
		if err != nil {
			t.Fatal(err)
		}
		m.EngineFailed(status.Error(codes.Unavailable, "away"))
		m.Queues.NewAddsMetric(queue).Inc()
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if m.GetCounter() != nil {
				got[f.GetName()+" "+m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	for series, want := range map[string]float64{
		"jobpolicy_engine_errors_total Unavailable": 2, "workqueue_adds_total job": 1, "workqueue_adds_total cronjob": 1,
	} {
		if got[series] != want {
			t.Errorf("%s = %v, want %v; there are %v", series, got[series], want, got)
		}
	}
}

// An alert sees a code's first error only if the series was there before, at 0.
func TestEveryCodeIsExportedBeforeTheFirstError(t *testing.T) {
	registry := prometheus.NewRegistry()
	if _, err := NewShared(registry); err != nil {
		t.Fatal(err)
	}
	if n, err := testutil.GatherAndCount(registry, "jobpolicy_engine_errors_total"); err != nil || n != 16 {
		t.Errorf("%d series (%v), want one for each of the 16 codes of an error", n, err)
	}
}

func TestMetricsAreKeptWithoutARegisterer(t *testing.T) {
	m, err := NewShared(nil)
	if err != nil {
		t.Fatal(err)
	}
	m.EngineFailed(status.Error(codes.Unavailable, "away"))
	if name := m.QueueName(JobQueue); name != "" {
		t.Errorf("a queue is called %q although nobody sees its metrics", name)
	}
}
