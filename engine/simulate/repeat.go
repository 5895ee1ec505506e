package simulate

import (
	"cmp"
	"slices"
	"time"
)

// A Distribution summarizes many plays of one scenario with different seeds.
type Distribution struct {
	// Runs is the number of plays.
	Runs int
	// Verdicts are in order of frequency, the most frequent first.
	Verdicts []VerdictCount
	// Makespan is the virtual time until the Job finished, or the play ended.
	Makespan Durations
	// Pods counts the pods that were created, Failed those that failed.
	Pods, Failed Counts
}

// A VerdictCount says how many plays ended in one way.
type VerdictCount struct {
	Verdict, Reason string
	Runs            int
	// Example is the seed of the first such play.
	Example uint64
}

// Durations and Counts are quantiles over the plays.
type (
	Durations struct{ Min, P50, P90, P99, Max time.Duration }
	Counts    struct {
		Min int `json:"min"`
		P50 int `json:"p50"`
		P90 int `json:"p90"`
		P99 int `json:"p99"`
		Max int `json:"max"`
	}
)

// Repeat plays a scenario n times. The first play has the scenario's seed, each
// further one the next seed.
func Repeat(sc Scenario, n int) (*Distribution, error) {
	d := &Distribution{Runs: n}
	var makespans []time.Duration
	var pods, failed []int
	for range n {
		r, err := Play(sc)
		if err != nil {
			return nil, err
		}
		d.count(r, sc.Seed)
		makespans = append(makespans, r.Makespan)
		pods = append(pods, len(r.Pods))
		failed = append(failed, r.failedPods())
		sc.Seed++
	}
	slices.SortStableFunc(d.Verdicts, func(a, b VerdictCount) int { return cmp.Compare(b.Runs, a.Runs) })
	d.Makespan = Durations(quantiles(makespans))
	d.Pods, d.Failed = Counts(quantiles(pods)), Counts(quantiles(failed))
	return d, nil
}

func (d *Distribution) count(r *Result, seed uint64) {
	for i := range d.Verdicts {
		if v := &d.Verdicts[i]; v.Verdict == r.Verdict && v.Reason == r.Reason {
			v.Runs++
			return
		}
	}
	d.Verdicts = append(d.Verdicts, VerdictCount{r.Verdict, r.Reason, 1, seed})
}

// failedPods counts pods that failed by themselves or were evicted, not those that
// were deleted.
func (r *Result) failedPods() int {
	n := 0
	for _, p := range r.Pods {
		if p.Outcome == "failed" || p.Outcome == "evicted" {
			n++
		}
	}
	return n
}

// quantiles sorts its argument. The q-quantile is the smallest value v so that at
// least the share q of all values is at most v.
func quantiles[T cmp.Ordered](values []T) struct{ Min, P50, P90, P99, Max T } {
	var q struct{ Min, P50, P90, P99, Max T }
	if len(values) == 0 {
		return q
	}
	slices.Sort(values)
	at := func(percent int) T { return values[max(0, (len(values)*percent+99)/100-1)] }
	q.Min, q.P50, q.P90, q.P99, q.Max = values[0], at(50), at(90), at(99), values[len(values)-1]
	return q
}
