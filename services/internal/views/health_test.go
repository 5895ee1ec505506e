package views

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// Decisions a second are told by rule, the most frequent first, as an average of the last snapshots.
func TestDecisionsASecondByRule(t *testing.T) {
	registry := prometheus.NewRegistry()
	decisions := prometheus.NewCounterVec(prometheus.CounterOpts{Name: decisionsMetric}, []string{"rule", "namespace"})
	registry.MustRegister(decisions)
	m, now := newMeter(registry), time.Unix(1_000, 0)
	decisions.WithLabelValues("none", "a").Add(100)
	if h := m.read(now, nil); h.PerSecond != 0 || h.Decisions != 100 {
		t.Errorf("at first %v a second of %v, want 0 of 100", h.PerSecond, h.Decisions)
	}
	decisions.WithLabelValues("none", "a").Add(10)
	decisions.WithLabelValues("none", "b").Add(10)
	decisions.WithLabelValues("completionsReached", "a").Add(5)
	h := m.read(now.Add(10*time.Second), nil)
	want := []ruleJSON{{"none", 2, 120}, {"completionsReached", 0.5, 5}}
	if diff := cmp.Diff(want, h.Rules); diff != "" || h.PerSecond != 2.5 {
		t.Errorf("%v a second, want 2.5; by rule (-want +got):\n%s", h.PerSecond, diff)
	}
	// What is older than the last few snapshots does not count.
	for i := range rateSamples {
		h = m.read(now.Add(time.Duration(11+i)*time.Second), nil)
	}
	if h.PerSecond != 0 || h.Rules[0].PerSecond != 0 {
		t.Errorf("%v a second after a while without decisions, want 0", h.PerSecond)
	}
}
