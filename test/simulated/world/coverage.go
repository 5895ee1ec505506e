package world

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/simulated/jobspec"
)

// outcome says what became of a Job, from its last known version.
func (w *world) outcome(job *batchv1.Job) string {
	if !w.managed(job) {
		return "not ours"
	}
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		if c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed {
			return string(c.Type) + " " + c.Reason
		}
	}
	switch {
	case job.DeletionTimestamp != nil:
		return "deleted before its end"
	case valueOr(job.Spec.Suspend, false):
		return "suspended"
	}
	return "goes on"
}

// features are what the plan has.
func (p *plan) features() []string {
	set := map[string]bool{}
	for _, j := range p.jobs {
		specFeatures(&j.spec, func(name string, has bool) { set[name] = set[name] || has })
		j.optionFeatures(set)
		set["own finalizer"] = set["own finalizer"] || len(j.finalizers) > 0
		for _, f := range j.fates {
			set["pod "+string(f.end)] = true
			set["pod restarts"] = set["pod restarts"] || f.restarts > 0
		}
	}
	for _, c := range p.crons {
		set["CronJob"] = true
		set["CronJob "+string(c.spec.ConcurrencyPolicy)] = true
		set["CronJob "+c.spec.Schedule] = true
		set["CronJob with options that cannot be read"] = set["CronJob with options that cannot be read"] || c.annotations[wire.Policy] == unreadableOptions
		set["CronJob with missed runs of its own"] = set["CronJob with missed runs of its own"] || strings.Contains(c.annotations[wire.Policy], "maxMissedRuns")
		set["CronJob that publishes its next run"] = set["CronJob that publishes its next run"] || strings.Contains(c.annotations[wire.Policy], "publishNextScheduleTime: true")
		set["CronJob with a group"] = set["CronJob with a group"] || strings.Contains(c.annotations[wire.Policy], "group")
		set["CronJob with a group of the cluster"] = p.executor.clusterRuns > 0
		set["CronJob with a stagger"] = set["CronJob with a stagger"] || strings.Contains(c.annotations[wire.Policy], "staggerSeconds")
	}
	set["statuses without answer"] = p.unanswered
	for _, name := range p.situations {
		set[name] = true
	}
	set["CronJobs over weeks"] = p.overWeeks()
	e := p.executor
	set["replaces the built-in"], set["beside the built-in"] = e.replace, !e.replace
	set["few changes a decision"], set["few uncounted"], set["rate limit"] = e.maxChanges > 0, e.maxUncounted > 0, e.qps > 0
	set["two executors"], set["two active executors"] = e.elected(), e.together
	set["warm standby"] = e.warmStandby
	set["looks for a second controller"], set["stands down"] = e.noticing, e.standDown
	set["few writes at once"] = e.maxWrites > 0
	set["one decision at once"] = e.workers == 1
	set["few rows"] = e.maxRows > 0
	set["changed while it is deleted"] = slices.ContainsFunc(p.steps, func(s *step) bool { return s.expires })
	var out []string
	for name, has := range set {
		if has {
			out = append(out, name)
		}
	}
	return out
}

// has reports whether the plan has a feature, a fault or a step of that name.
func (p *plan) has(name string) bool {
	return slices.Contains(p.features(), name) ||
		slices.ContainsFunc(p.faults, func(f *fault) bool { return string(f.kind) == name }) ||
		slices.ContainsFunc(p.steps, func(s *step) bool { return s.verb == name })
}

// specFeatures calls set for each field of a spec.
func specFeatures(s *batchv1.JobSpec, set func(name string, has bool)) {
	for _, f := range jobspec.Fields {
		set(f.Name, f.Has(s))
	}
}

// A tally counts worlds by what they contained and how they ended.
type tally struct {
	worlds, broken, writes int
	// byOutcome counts, for each feature, step or fault, the worlds with each
	// outcome of a Job; the empty outcome counts all.
	byOutcome map[string]map[string]int
	crossing  crossing
	contract  map[string]bool // The parts of the contract that were used.
	taken     stepCounts      // The steps of package ledger.
}

func newTally() *tally {
	return &tally{byOutcome: map[string]map[string]int{}, contract: map[string]bool{}, taken: stepCounts{}}
}

// A report is the result of one world, for the tally and for a parent process.
type report struct {
	Seed     uint64         `json:"seed"`
	Passed   bool           `json:"passed,omitempty"` // Not played: the plan lacks the required feature.
	Features []string       `json:"features,omitempty"`
	Outcomes map[string]int `json:"outcomes,omitempty"`
	Jobs     []crossedJob   `json:"jobs,omitempty"`
	Contract []string       `json:"contract,omitempty"`
	Taken    stepCounts     `json:"taken,omitempty"`
	Writes   int            `json:"writes"`
	Micros   int64          `json:"micros"`
	Digest   string         `json:"digest,omitempty"`
	Breaches []string       `json:"breaches,omitempty"`
	Rule     string         `json:"rule,omitempty"`
	Story    string         `json:"story,omitempty"`
}

func (e *aftermath) report() report {
	r := report{Seed: e.plan.seed, Outcomes: e.outcomes, Jobs: e.jobs, Taken: e.taken, Writes: e.writes, Micros: e.took.Microseconds()}
	for _, f := range e.plan.features() {
		r.Features = append(r.Features, "feature: "+f)
	}
	for f := range e.faults {
		r.Features = append(r.Features, "fault: "+string(f))
	}
	for what, is := range e.reached {
		if part, ok := strings.CutPrefix(what, usedPart); ok {
			r.Contract = append(r.Contract, part)
		} else if is {
			r.Features = append(r.Features, "reached: "+what)
		}
	}
	for _, m := range e.compared {
		r.Features = append(r.Features, "metric: "+m)
	}
	for s := range e.steps {
		r.Features = append(r.Features, "step: "+s)
	}
	for _, b := range e.breaches {
		r.Breaches = append(r.Breaches, b.String())
	}
	if len(e.breaches) > 0 {
		r.Rule = e.breaches[0].rule
	}
	return r
}

func (t *tally) add(r report) {
	t.worlds++
	t.writes += r.Writes
	if len(r.Breaches) > 0 {
		t.broken++
	}
	for _, part := range r.Contract {
		t.contract[part] = true
	}
	t.taken.add(nil, r.Taken)
	happened := map[string]bool{}
	for _, f := range r.Features {
		if kind, what, _ := strings.Cut(f, ": "); kind == "fault" || kind == "step" {
			happened[what] = true
		}
		if t.byOutcome[f] == nil {
			t.byOutcome[f] = map[string]int{}
		}
		t.byOutcome[f][""]++
		for o := range r.Outcomes {
			t.byOutcome[f][o]++
		}
	}
	t.crossing.add(r.Jobs, happened)
}

// uncompared are the metrics that no executor had to tell anything in, also not after a restart.
func (t *tally) uncompared() (series []string) {
	for _, m := range metered {
		for _, what := range []string{m, m + afterRestart} {
			if t.byOutcome["metric: "+what] == nil {
				series = append(series, what)
			}
		}
	}
	return series
}

// untaken are the steps of the model that no executor took.
func (t *tally) untaken() (steps []ledger.Step) {
	for _, step := range ledger.Steps {
		if t.taken[step] == 0 {
			steps = append(steps, step)
		}
	}
	return steps
}

// String is the table of what was covered.
func (t *tally) String() string {
	all := map[string]bool{}
	for _, row := range t.byOutcome {
		for o := range row {
			all[o] = true
		}
	}
	delete(all, "")
	outcomes := slices.Sorted(maps.Keys(all))
	var out strings.Builder
	for i, o := range outcomes {
		fmt.Fprintf(&out, "  (%c) %s\n", 'a'+i, o)
	}
	fmt.Fprintf(&out, "\n%-46s %7s", "worlds in which there was", "all")
	for i := range outcomes {
		fmt.Fprintf(&out, "%7s", fmt.Sprintf("(%c)", 'a'+i))
	}
	out.WriteString("\n")
	for _, f := range slices.Sorted(maps.Keys(t.byOutcome)) {
		fmt.Fprintf(&out, "%-46s %7d", f, t.byOutcome[f][""])
		for _, o := range outcomes {
			cell := "."
			if n := t.byOutcome[f][o]; n > 0 {
				cell = fmt.Sprint(n)
			}
			fmt.Fprintf(&out, "%7s", cell)
		}
		out.WriteString("\n")
	}
	out.WriteString("\nsteps of the model, and how often executors took them\n")
	for _, step := range ledger.Steps {
		fmt.Fprintf(&out, "%-46s %7d\n", step, t.taken[step])
	}
	return out.String()
}
