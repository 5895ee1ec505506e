package cron

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"jobpolicy.dev/executor/shadow"
	"jobpolicy.dev/test/simulated/parity/virtual"
)

// shadowRest is the rest that the shadow waits for, twice, before it reports. The side
// rests for longer.
const shadowRest = settle / 4

// TestAShadowReportsOnlyTheListedDifferences plays lives under the built-in controllers,
// with ours in shadow mode beside them.
func TestAShadowReportsOnlyTheListedDifferences(t *testing.T) {
	var lives []*life
	for i := range *cronsFlag / 2 {
		lives = append(lives, newLife(*seedFlag+uint64(i), true))
	}
	for i := range *ttlsFlag / 2 {
		lives = append(lives, newLife(*seedFlag+uint64(i), false))
	}
	var listed, comparisons atomic.Int64
	virtual.Each(len(lives), func(i int) {
		l := lives[i]
		registry := prometheus.NewRegistry()
		report, err := shadow.NewReport(shadow.Config{Rest: shadowRest, Registerer: registry, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Error(err)
			return
		}
		_, wrong := l.play(t, player{builtin: true, seed: l.seed, shadow: report}, &planner{l, *jumpsFlag})
		if len(wrong) > 0 {
			t.Errorf("%s\n  %s", l, strings.Join(wrong, "\n  "))
		}
		families, err := registry.Gather()
		if err != nil {
			t.Error(err)
		}
		for _, family := range families {
			for _, m := range family.GetMetric() {
				if family.GetName() == "jobpolicy_shadow_comparisons_total" {
					comparisons.Add(int64(m.GetCounter().GetValue()))
				}
			}
		}
		for _, e := range report.Entries() {
			if l.partsWith(e) {
				listed.Add(1)
				continue
			}
			t.Errorf("%s\n  %s %s: %s; %s; %s to %s", l, e.Type, e.Kind, e.Detail, e.Why, e.Since, e.Until)
		}
	})
	t.Logf("%d lives, %d comparisons, %d differences that are listed", len(lives), comparisons.Load(), listed.Load())
	if listed.Load() == 0 {
		t.Error("the lives show differences that are listed, and the shadow has reported none")
	}
	if comparisons.Load() < int64(len(lives)) {
		t.Errorf("%d comparisons in %d lives, want at least one in each", comparisons.Load(), len(lives))
	}
}

// partsWith reports whether a difference is one at which the sides part deliberately: a run
// that only ours starts, or the deletion that makes room for it.
func (l *life) partsWith(e shadow.Entry) bool {
	run := e.Kind == shadow.CreateJob || e.Kind == shadow.DeleteJob && strings.HasSuffix(e.Detail, "_REPLACED")
	return e.Type == shadow.TypeCronJob && run && (l.irregular || l.every || l.hasty || l.taken)
}
