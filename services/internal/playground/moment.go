package playground

import (
	"fmt"
	"strings"

	"jobpolicy.dev/engine/simulate"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A Moment is the Job at one time, and what the engine said then.
type Moment struct {
	Clock      string      `json:"clock"`
	Counters   []Counter   `json:"counters"`
	Conditions []Condition `json:"conditions"`
	// Decisions are those of the moment; the last one has nothing left to do.
	Decisions []Decision `json:"decisions"`
}

// A Counter is a field of the Job's status, or of its spec.
type Counter struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A Condition is a condition in the Job's status.
type Condition struct {
	Type    string `json:"type"`
	True    bool   `json:"true"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// A Decision is the engine's explanation of one decision.
type Decision struct {
	Summary string `json:"summary"`
	Rules   []Rule `json:"rules"`
	Waits   []Wait `json:"waits"`
}

// A Rule is the answer of one rule.
type Rule struct {
	Name    string `json:"name"`
	Decided bool   `json:"decided"`
	Detail  string `json:"detail"`
}

// A Wait is something that the Job waits for. Until is empty if no time ends it.
type Wait struct {
	Detail string `json:"detail"`
	Until  string `json:"until"`
}

// Moment returns moment i of the last play; nil if there is no such moment.
func (p *Playground) Moment(i int) *Moment {
	if p.last == nil || i < 0 || i >= len(p.last.Moments) {
		return nil
	}
	m := p.last.Moments[i]
	out := &Moment{Clock: simulate.Clock(m.At), Counters: counters(m), Conditions: []Condition{}, Decisions: []Decision{}}
	for _, c := range m.Status.GetConditions() {
		out.Conditions = append(out.Conditions, Condition{
			c.GetType(), c.GetStatus() == jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE, c.GetReason(), c.GetMessage(),
		})
	}
	for _, e := range m.Explanations {
		d := decision(e)
		// Waits have wall-clock times; the page counts from the beginning of the play.
		for i, w := range e.GetWaits() {
			if w.GetUntil() != nil {
				d.Waits[i].Until = simulate.Clock(w.GetUntil().AsTime().Sub(start))
			}
		}
		out.Decisions = append(out.Decisions, d)
	}
	return out
}

func counters(m *simulate.Moment) []Counter {
	s := m.Status
	out := []Counter{
		{"parallelism", fmt.Sprint(m.Spec.GetParallelism())},
		{"active", fmt.Sprint(s.GetActive())},
		{"ready", fmt.Sprint(s.GetReady())},
		{"terminating", fmt.Sprint(s.GetTerminating())},
		{"succeeded", fmt.Sprint(s.GetSucceeded())},
		{"failed", fmt.Sprint(s.GetFailed())},
	}
	if m.Spec.Completions != nil {
		out[4].Value += fmt.Sprintf(" of %d", m.Spec.GetCompletions())
	}
	if m.Spec.GetCompletionMode() == jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED {
		out = append(out, Counter{"completedIndexes", wire.FormatIndexes(s.GetCompletedIndexes())})
	}
	if m.Spec.BackoffLimitPerIndex != nil {
		out = append(out, Counter{"failedIndexes", wire.FormatIndexes(s.GetFailedIndexes())})
	}
	return out
}

func decision(e *jobpolicyv1.Explanation) Decision {
	d := Decision{Summary: strings.TrimSpace(e.GetSummary()), Rules: []Rule{}, Waits: []Wait{}}
	for _, r := range e.GetRules() {
		d.Rules = append(d.Rules, Rule{r.GetRule().Name(), r.GetDecided(), r.GetDetail()})
	}
	for _, w := range e.GetWaits() {
		d.Waits = append(d.Waits, Wait{Detail: w.GetDetail()})
	}
	return d
}
