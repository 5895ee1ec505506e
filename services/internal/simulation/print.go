package simulation

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"jobpolicy.dev/engine/simulate"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/playground"
)

func (s *simulation) printResult(name string, r *simulate.Result) error {
	report, err := playground.NewReport(name, r)
	if err != nil {
		return err
	}
	if done, err := s.output.Machine(s.Out, report); done {
		return err
	}
	w := s.Out
	fmt.Fprintf(w, "%s\n\n", cli.Paint(w, cli.Strong, "Job "+name))
	for _, e := range r.Timeline {
		fmt.Fprintf(w, "%10s  %s\n", simulate.Clock(e.At), paintEntry(w, e))
	}
	fmt.Fprintln(w)
	if s.output.Format == "wide" {
		if err := printPods(w, r.Pods); err != nil {
			return err
		}
	}
	fmt.Fprintln(w, verdictLine(w, r))
	fmt.Fprintln(w, "pods:   "+podsLine(r))
	fmt.Fprintln(w, "status: "+statusLine(r.Status))
	return nil
}

func paintEntry(w io.Writer, e *simulate.Entry) string {
	switch e.Kind {
	case simulate.PodsFailed, simulate.ContainersFailed, simulate.PodsEvicted, simulate.PodsOverdue:
		return cli.Paint(w, cli.Bad, e.Text)
	case simulate.PodsSucceeded:
		return cli.Paint(w, cli.Good, e.Text)
	case simulate.Waiting:
		return cli.Paint(w, cli.Notice, e.Text)
	case simulate.Condition, simulate.UserChange:
		return cli.Paint(w, cli.Strong, e.Text)
	}
	return e.Text
}

func verdictLine(w io.Writer, r *simulate.Result) string {
	after := " after " + simulate.Clock(r.Makespan)
	switch r.Verdict {
	case "Complete":
		return cli.Paint(w, cli.Good, "Complete") + " (" + r.Reason + ")" + after
	case "Failed":
		return cli.Paint(w, cli.Bad, "Failed") + " (" + r.Reason + ")" + after + ": " + r.Message
	}
	line := cli.Paint(w, cli.Notice, r.Verdict) + after + ": " + playground.Unfinished(r)
	if r.Spec.GetSuspend() && !r.Deleted {
		line += " (--resume-at)"
	}
	return line
}

func podsLine(r *simulate.Result) string {
	counts := map[string]int{}
	for _, p := range r.Pods {
		counts[cmp.Or(p.Outcome, "not ended")]++
	}
	var parts []string
	for _, what := range []string{"succeeded", "failed", "evicted", "deleted", "not ended"} {
		if n := counts[what]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", what, n))
		}
	}
	return strings.TrimSuffix(fmt.Sprintf("%d created: %s", len(r.Pods), strings.Join(parts, ", ")), ": ")
}

func statusLine(status *jobpolicyv1.JobStatus) string {
	parts := []string{
		fmt.Sprintf("active %d", status.GetActive()), fmt.Sprintf("succeeded %d", status.GetSucceeded()), fmt.Sprintf("failed %d", status.GetFailed()),
	}
	if set := wire.FormatIndexes(status.GetCompletedIndexes()); set != "" {
		parts = append(parts, "completedIndexes "+set)
	}
	if set := wire.FormatIndexes(status.GetFailedIndexes()); set != "" {
		parts = append(parts, "failedIndexes "+set)
	}
	return strings.Join(parts, ", ")
}

func printPods(w io.Writer, pods []*simulate.Pod) error {
	rows := [][]string{{"POD", "CREATED", "STARTED", "ENDED", "OUTCOME", "EXIT CODE", "RESTARTS"}}
	for _, p := range pods {
		row := []string{p.Name, simulate.Clock(p.Created), "-", "-", cmp.Or(p.Outcome, "-"), "-", fmt.Sprint(p.Restarts)}
		if p.Started != nil {
			row[2] = simulate.Clock(*p.Started)
		}
		if p.Ended != nil {
			row[3], row[5] = simulate.Clock(*p.Ended), fmt.Sprint(p.ExitCode)
		}
		rows = append(rows, row)
	}
	if err := cli.Table(w, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

// spreadReport is a distribution in a form for programs.
type spreadReport struct {
	Job      string          `json:"job"`
	Runs     int             `json:"runs"`
	Verdicts []verdictReport `json:"verdicts"`
	Makespan secondsSpread   `json:"makespanSeconds"`
	Pods     simulate.Counts `json:"pods"`
	Failed   simulate.Counts `json:"failedPods"`
}

type verdictReport struct {
	Verdict string  `json:"verdict"`
	Reason  string  `json:"reason,omitempty"`
	Runs    int     `json:"runs"`
	Share   float64 `json:"share"`
	// Seed is the seed of the first of these plays.
	Seed uint64 `json:"seed"`
}

type secondsSpread struct {
	Min float64 `json:"min"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func (s *simulation) printDistribution(name string, d *simulate.Distribution) error {
	m := d.Makespan
	report := spreadReport{
		Job: name, Runs: d.Runs, Pods: d.Pods, Failed: d.Failed,
		Makespan: secondsSpread{m.Min.Seconds(), m.P50.Seconds(), m.P90.Seconds(), m.P99.Seconds(), m.Max.Seconds()},
	}
	for _, v := range d.Verdicts {
		report.Verdicts = append(report.Verdicts, verdictReport{v.Verdict, v.Reason, v.Runs, float64(v.Runs) / float64(d.Runs), v.Example})
	}
	if done, err := s.output.Machine(s.Out, report); done {
		return err
	}
	w := s.Out
	fmt.Fprintf(w, "%s, played %d times\n\n", cli.Paint(w, cli.Strong, "Job "+name), d.Runs)
	rows := [][]string{{"VERDICT", "REASON", "PLAYS", "SHARE", "FIRST SEED"}}
	for _, v := range report.Verdicts {
		rows = append(rows, []string{v.Verdict, cmp.Or(v.Reason, "-"), fmt.Sprint(v.Runs), fmt.Sprintf("%.1f%%", 100*v.Share), fmt.Sprint(v.Seed)})
	}
	if err := cli.Table(w, rows); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return cli.Table(w, [][]string{
		{"", "MIN", "50%", "90%", "99%", "MAX"},
		{"makespan", simulate.Clock(m.Min), simulate.Clock(m.P50), simulate.Clock(m.P90), simulate.Clock(m.P99), simulate.Clock(m.Max)},
		countsRow("pods created", d.Pods), countsRow("pods failed", d.Failed),
	})
}

func countsRow(name string, c simulate.Counts) []string {
	return []string{name, fmt.Sprint(c.Min), fmt.Sprint(c.P50), fmt.Sprint(c.P90), fmt.Sprint(c.P99), fmt.Sprint(c.Max)}
}
