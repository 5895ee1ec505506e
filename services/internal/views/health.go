package views

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"jobpolicy.dev/services/internal/probes"
)

// The metrics that are shown.
const (
	decisionsMetric = "jobpolicy_decisions_total"
	errorsMetric    = "jobpolicy_engine_errors_total"
	latencyMetric   = "jobpolicy_decision_duration_seconds"
	depthMetric     = "workqueue_depth"
	addsMetric      = "workqueue_adds_total"
)

// rateSamples is the number of snapshots over which a rate is averaged.
const rateSamples = 10

// healthJSON is the health of engine and queues.
type healthJSON struct {
	Checks []checkJSON `json:"checks"`
	Queues []queueJSON `json:"queues"`
	Rules  []ruleJSON  `json:"rules"`
	// PerSecond is the number of decisions on Jobs a second.
	PerSecond float64 `json:"perSecond"`
	Decisions float64 `json:"decisions"`
	// MeanSeconds is the mean duration of recent decisions; 0: there were none.
	MeanSeconds float64     `json:"meanSeconds"`
	Errors      []errorJSON `json:"errors"`
}

type checkJSON struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

type queueJSON struct {
	Name      string  `json:"name"`
	Depth     float64 `json:"depth"`
	PerSecond float64 `json:"perSecond"`
}

type ruleJSON struct {
	Rule      string  `json:"rule"`
	PerSecond float64 `json:"perSecond"`
	Total     float64 `json:"total"`
}

type errorJSON struct {
	Code  string  `json:"code"`
	Total float64 `json:"total"`
}

// A meter reads metrics, and computes rates from the last few readings.
type meter struct {
	gatherer prometheus.Gatherer
	samples  []sample // the oldest first
}

// A sample is one reading: sums, by the label that the page shows.
type sample struct {
	at                           time.Time
	rules, errors, depth, adds   map[string]float64
	decisions, answers, duration float64
}

func newMeter(g prometheus.Gatherer) *meter { return &meter{gatherer: g} }

func (m *meter) read(now time.Time, checks []probes.Check) healthJSON {
	s := m.sample(now)
	m.samples = append(m.samples, s)
	m.samples = m.samples[max(0, len(m.samples)-rateSamples-1):]
	old := m.samples[0]
	seconds := s.at.Sub(old.at).Seconds()
	rate := func(now, before float64) float64 {
		if seconds <= 0 {
			return 0
		}
		return max(0, now-before) / seconds
	}
	h := healthJSON{
		PerSecond: rate(s.decisions, old.decisions), Decisions: s.decisions,
		Checks: []checkJSON{}, Queues: []queueJSON{}, Rules: []ruleJSON{}, Errors: []errorJSON{},
	}
	if n := s.answers - old.answers; n > 0 {
		h.MeanSeconds = (s.duration - old.duration) / n
	}
	for _, c := range checks {
		h.Checks = append(h.Checks, checked(c))
	}
	for _, name := range slices.Sorted(maps.Keys(s.depth)) {
		h.Queues = append(h.Queues, queueJSON{name, s.depth[name], rate(s.adds[name], old.adds[name])})
	}
	for _, name := range slices.Sorted(maps.Keys(s.rules)) {
		h.Rules = append(h.Rules, ruleJSON{name, rate(s.rules[name], old.rules[name]), s.rules[name]})
	}
	slices.SortStableFunc(h.Rules, func(a, b ruleJSON) int { return cmp.Compare(b.Total, a.Total) })
	for _, code := range slices.Sorted(maps.Keys(s.errors)) {
		h.Errors = append(h.Errors, errorJSON{code, s.errors[code]})
	}
	return h
}

// checkTimeout bounds a check. Most checks remember their last answer, so it can be short.
const checkTimeout = time.Second

func checked(c probes.Check) checkJSON {
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	text, _, err := c.Look(ctx)
	return checkJSON{c.Name, err == nil, text}
}

// sample reads the metrics. Those that cannot be gathered are left out.
func (m *meter) sample(now time.Time) sample {
	s := sample{at: now, rules: map[string]float64{}, errors: map[string]float64{}, depth: map[string]float64{}, adds: map[string]float64{}}
	families, _ := m.gatherer.Gather() // besides an error it returns what it could gather
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			s.add(f.GetName(), metric)
		}
	}
	return s
}

func (s *sample) add(family string, m *dto.Metric) {
	switch family {
	case decisionsMetric:
		s.rules[label(m, "rule")] += m.GetCounter().GetValue()
		s.decisions += m.GetCounter().GetValue()
	case errorsMetric:
		s.errors[label(m, "code")] += m.GetCounter().GetValue()
	case latencyMetric:
		s.answers += float64(m.GetHistogram().GetSampleCount())
		s.duration += m.GetHistogram().GetSampleSum()
	case depthMetric:
		s.depth[label(m, "name")] += m.GetGauge().GetValue()
	case addsMetric:
		s.adds[label(m, "name")] += m.GetCounter().GetValue()
	}
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return strings.Clone(l.GetValue())
		}
	}
	return ""
}
