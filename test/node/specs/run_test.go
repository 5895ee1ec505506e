package specs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"jobpolicy.dev/deploy/local/must"
)

// script returns the Command of a shell script, which finds the report's path in $1.
func script(text string) func(Spec, string) []string {
	return func(_ Spec, report string) []string { return []string{"sh", "-c", text, "sh", report} }
}

// reportOf is Ginkgo's report of one spec, as its process writes it.
func reportOf(text, state, failure string) string {
	return fmt.Sprintf(`[{"SpecReports":[{"LeafNodeType":"It","ContainerHierarchyTexts":["[sig-apps] Job"],"LeafNodeText":%q,`+
		`"State":%q,"Failure":{"Message":%q,"Location":{"FileName":"job.go","LineNumber":7}}},`+
		`{"LeafNodeType":"It","LeafNodeText":"another","State":"skipped"}]}]`, text, state, failure)
}

func TestResults(t *testing.T) {
	passed := reportOf("runs", "passed", "")
	cases := map[string]struct {
		report string // empty: none is written
		end    string // what the process does at its end
		want   Result
	}{
		"passed":                     {report: passed, end: "exit 0", want: Result{Passed: true}},
		"passed, but then a crash":   {report: passed, end: "exit 2", want: Result{Failure: "the spec passed, but its process did not: exit status 2"}},
		"failed":                     {report: reportOf("runs", "failed", "no pod"), end: "exit 1", want: Result{Failure: "failed: no pod\njob.go:7"}},
		"failed, with a good ending": {report: reportOf("runs", "failed", "no pod"), end: "exit 0", want: Result{Failure: "failed: no pod\njob.go:7"}},
		"ran out of time":            {report: reportOf("runs", "timedout", ""), end: "exit 1", want: Result{Failure: "state timedout"}},
		"skipped itself":             {report: reportOf("runs", "skipped", "needs two nodes"), end: "exit 0", want: Result{Skipped: "needs two nodes"}},
		"never ran":                  {report: reportOf("runs", "skipped", ""), end: "exit 0", want: Result{Failure: "state skipped"}},
		"another spec ran": {
			report: reportOf("walks", "passed", ""), end: "exit 0",
			want: Result{Failure: `report of "[sig-apps] Job runs": found 0 specs of this text, expected 1`},
		},
		"no report": {end: "exit 3", want: Result{Failure: "the process ended without a report: exit status 3"}},
	}
	spec := Spec{Text: "[sig-apps] Job runs"}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			text := "echo said; " + tc.end
			if tc.report != "" {
				source := filepath.Join(dir, "written")
				must.Succeed(t, os.WriteFile(source, []byte(tc.report), 0o600))
				text = "cp " + source + ` "$1"; ` + text
			}
			var told []Result
			runner := Runner{Command: script(text), Dir: dir, Done: func(r Result) { told = append(told, r) }}
			got := runner.Run(t.Context(), []Spec{spec})

			tc.want.Spec, tc.want.Log = spec, "said\n"
			ignored := cmpopts.IgnoreFields(Result{}, "Seconds")
			must.Equal(t, "results", []Result{tc.want}, got, ignored)
			must.Equal(t, "told", got, told)
		})
	}
}

func TestTexts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	must.Succeed(t, os.WriteFile(file, []byte(reportOf("runs", "passed", "")), 0o600))
	texts, err := Texts(file)
	must.Succeed(t, err)
	if diff := cmp.Diff([]string{"[sig-apps] Job runs", "another"}, texts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSerialSpecsRunAlone(t *testing.T) {
	dir := t.TempDir()
	// Each process leaves a mark for ever, and another one for as long as it runs. Those that may run beside others
	// wait until three have begun, and say so; those that must not say how many run.
	command := func(s Spec, report string) []string {
		text := `touch begun.$$ running.$$; `
		if s.Serial {
			text += `sleep 0.1; ls | grep -c running; `
		} else {
			text += `i=0; until [ $(ls | grep -c begun) -ge 3 ] || [ $i -ge 200 ]; do sleep 0.05; i=$((i+1)); done; [ $i -lt 200 ] && echo beside; `
		}
		return []string{"sh", "-c", "cd " + dir + "; " + text + "rm running.$$"}
	}
	var told []string
	runner := Runner{Command: command, Parallel: 3, Dir: dir, Done: func(r Result) { told = append(told, r.Name()) }}
	alone, aloneToo := named("Job alone"), named("Job alone too")
	alone.Serial, aloneToo.Serial = true, true
	results := runner.Run(t.Context(), []Spec{alone, named("Job a"), named("Job b"), named("Job c"), aloneToo})

	slices.Sort(told[:len(told)-2]) // those beside each other end in any order
	must.Equal(t, "order in which the specs ended", []string{"Job a", "Job b", "Job c", "Job alone", "Job alone too"}, told)
	for _, r := range results {
		want := "beside\n"
		if r.Serial {
			want = "1\n"
		}
		if r.Log != want {
			t.Errorf("%s printed %q, want %q", r.Name(), r.Log, want)
		}
	}
}

func TestSpecsThatWaitTakeNobodysPlace(t *testing.T) {
	dir := t.TempDir()
	const first, second = "CronJob should schedule multiple jobs concurrently", "CronJob should replace jobs when ReplaceConcurrent"
	// Those that wait do so until the other one has ended, as a schedule does not care for what runs beside it.
	command := func(s Spec, _ string) []string {
		text := `touch done`
		if takes(s) > 0 {
			text = `i=0; until [ -e done ] || [ $i -ge 200 ]; do sleep 0.05; i=$((i+1)); done; [ $i -lt 200 ] && echo beside`
		}
		return []string{"sh", "-c", "cd " + dir + "; " + text}
	}
	runner := Runner{Command: command, Parallel: 1, Dir: dir, Done: func(Result) {}}
	for _, r := range runner.Run(t.Context(), []Spec{named(first), named(second), named("Job a")}) {
		if takes(r.Spec) > 0 && r.Log != "beside\n" {
			t.Errorf("%s printed %q, want that Job a runs beside it", r.Name(), r.Log)
		}
	}
}

func TestWhatIsInterruptedFails(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	runs := filepath.Join(t.TempDir(), "runs")
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(runs); err == nil {
				cancel(errors.New("enough"))
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	runner := Runner{
		Command: script(`read -r _ _ _ _ group _ </proc/$$/stat; [ $group = $$ ] && echo group of its own
			trap 'echo cleaned up; exit 0' INT; touch ` + runs + `; while :; do sleep 0.05; done`),
		Dir: t.TempDir(), Parallel: 1, Done: func(Result) {},
	}
	got := runner.Run(ctx, []Spec{named("Job a"), named("Job b")})
	want := []Result{
		{Spec: named("Job a"), Failure: "interrupted: enough", Log: "group of its own\ncleaned up\n"},
		{Spec: named("Job b"), Failure: "not begun: enough"},
	}
	must.Equal(t, "results", want, got, cmpopts.IgnoreFields(Result{}, "Seconds"))
}
