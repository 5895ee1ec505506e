package parity

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/shadow"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/test/simulated/parity/virtual"
)

// shadowRest is the rest that the shadow waits for, twice, before it reports. The side
// rests for longer.
const shadowRest = settle / 4

// seen are what a shadow found in a case.
type seen struct {
	*transcript
	entries     []shadow.Entry
	comparisons int
}

// playShadowed plays a case under the built-in controller, with our executor in shadow mode
// beside it, which asks the engine through meddle.
func playShadowed(t *testing.T, c *Case, meddle func(*virtual.Engine) executor.Decider) seen {
	registry := prometheus.NewRegistry()
	report, err := shadow.NewReport(shadow.Config{Rest: shadowRest, Registerer: registry, Logger: slog.New(slog.DiscardHandler)})
	must.Succeed(t, err)
	beside := func(e *virtual.Engine) virtual.Program {
		return virtual.ShadowJobs(meddle(e), report, slog.New(slog.DiscardHandler))
	}
	s := seen{transcript: player{builtin: true, seed: c.seed, shadow: beside}.play(t, c), entries: report.Entries()}
	families, err := registry.Gather()
	must.Succeed(t, err)
	for _, family := range families {
		if family.GetName() != "jobpolicy_shadow_comparisons_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			s.comparisons += int(m.GetCounter().GetValue())
		}
	}
	return s
}

func unchanged(e *virtual.Engine) executor.Decider { return e }

// A difference in time only. It is not on the list, because the comparison of two sides does
// not see it. A shadow sees it: the engine wants the pod before the built-in controller does.
const disruptionsDoNotDelay = "ignored-disruption"

// ignoresDisruptions reports whether a case has a disruption that its policy may ignore.
func (c *Case) ignoresDisruptions() bool {
	policy := c.Spec.PodFailurePolicy
	return policy != nil && strings.Contains(strings.Join(c.Steps, ";"), "condition=DisruptionTarget") &&
		slices.ContainsFunc(policy.Rules, func(r batchv1.PodFailurePolicyRule) bool { return r.Action == batchv1.PodFailurePolicyActionIgnore })
}

// listed is the row of the deliberate difference that a shadow has found; "" if it is not deliberate.
func (s seen) listed(c *Case, e shadow.Entry) string {
	anyView := func(is func([]string) bool) bool {
		return slices.ContainsFunc(s.moments, func(m moment) bool { return is(m.view.lines) })
	}
	switch {
	case e.Kind == shadow.WriteStatus && strings.HasSuffix(e.Rule, "AlreadyDeclared") && anyView(stuck):
		return suspendedFinishes
	case e.Kind != shadow.CreatePods && e.Kind != shadow.WriteStatus || !strings.HasPrefix(e.Why, "create pods: "):
		return ""
	case c.ignoresDisruptions():
		return disruptionsDoNotDelay
	}
	return ""
}

// TestAShadowReportsOnlyTheListedDifferences plays the written cases and a third of the
// generated ones.
func TestAShadowReportsOnlyTheListedDifferences(t *testing.T) {
	cases := allCases(*casesFlag / 3)
	known := map[string]*atomic.Int64{suspendedFinishes: {}, disruptionsDoNotDelay: {}}
	var comparisons, idle atomic.Int64
	virtual.Each(len(cases), func(i int) {
		c := cases[i]
		s := playShadowed(t, c, unchanged)
		comparisons.Add(int64(s.comparisons))
		if s.comparisons == 0 {
			idle.Add(1)
		}
		if len(s.wrong) > 0 {
			t.Errorf("%s: %s", c, strings.Join(s.wrong, "\n"))
		}
		for _, e := range s.entries {
			if name := s.listed(c, e); name != "" {
				known[name].Add(1)
				continue
			}
			t.Errorf("%s\n  %s", c, describe(e))
		}
	})
	t.Logf("%d cases, %d comparisons, %d cases without one", len(cases), comparisons.Load(), idle.Load())
	for name, n := range known {
		t.Logf("%s: %d", name, n.Load())
		if n.Load() == 0 && name != disruptionsDoNotDelay { // Rare.
			t.Errorf("the cases show the difference %q, and the shadow did not report it", name)
		}
	}
}

func describe(e shadow.Entry) string {
	return fmt.Sprintf("%s %s (%s): %s; %s; from %s to %s", e.Type, e.Kind, e.Rule, e.Detail, e.Why, e.Since.Format(time.TimeOnly), e.Until.Format(time.TimeOnly))
}

// A meddler changes the engine's decisions.
type meddler struct {
	executor.Decider
	change func(*jobpolicyv1.DecideJobRequest, *jobpolicyv1.DecideJobResponse)
}

func (m meddler) DecideJob(ctx context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	d, err := m.Decider.DecideJob(ctx, req)
	if err == nil {
		m.change(req, d)
	}
	return d, err
}

func TestAShadowReportsPlantedDifferences(t *testing.T) {
	cases := map[string]struct {
		change func(*jobpolicyv1.DecideJobRequest, *jobpolicyv1.DecideJobResponse)
		want   shadow.Kind
	}{
		"one more pod": {func(req *jobpolicyv1.DecideJobRequest, d *jobpolicyv1.DecideJobResponse) {
			d.Disposition = jobpolicyv1.Disposition_DISPOSITION_APPLY
			d.Create = &jobpolicyv1.CreatePods{Count: 1}
		}, shadow.CreatePods},
		"a counter": {func(req *jobpolicyv1.DecideJobRequest, d *jobpolicyv1.DecideJobResponse) {
			d.Disposition = jobpolicyv1.Disposition_DISPOSITION_APPLY
			d.Status = proto.CloneOf(req.GetStatus())
			d.Status.Succeeded++
		}, shadow.WriteStatus},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := caseNamed("recreate-twice")
			must.Succeed(t, err)
			c.Steps = nil
			s := playShadowed(t, c, func(e *virtual.Engine) executor.Decider { return meddler{e, tc.change} })
			if len(s.wrong) > 0 || s.err != nil {
				t.Errorf("the play: %v, %q", s.err, s.wrong)
			}
			if len(s.entries) != 1 || s.entries[0].Kind != tc.want {
				t.Errorf("differences %v, want one: %s", s.entries, tc.want)
			}
		})
	}
}
