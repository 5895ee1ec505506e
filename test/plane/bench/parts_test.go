package bench

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/deploy/local/must"
)

func TestAnyWrongCountIsFound(t *testing.T) {
	cases := map[string]struct {
		pods   func(*podCounts)
		status func(*batchv1.JobStatus)
		want   string
	}{
		"nothing wrong":                   {},
		"a pod too many":                  {pods: func(l *podCounts) { l.seen++ }, want: "pods created: 4, want 3"},
		"a pod that still runs":           {pods: func(l *podCounts) { l.succeeded--; l.running++ }, want: "pods ended: 2, want 3"},
		"a finalizer left":                {pods: func(l *podCounts) { l.finalizers++ }, want: "finalizers left: 1, want 0"},
		"an index without a pod":          {pods: func(l *podCounts) { l.indexes-- }, want: "indexes that had a pod: 2, want 3"},
		"an index with two pods":          {pods: func(l *podCounts) { l.repeated++ }, want: "indexes that had several pods: 1, want 0"},
		"one success too many":            {status: func(s *batchv1.JobStatus) { s.Succeeded++ }, want: "succeeded: 3, want 2"},
		"a failure that is not counted":   {status: func(s *batchv1.JobStatus) { s.Failed-- }, want: "failed: 0, want 1"},
		"an active pod":                   {status: func(s *batchv1.JobStatus) { s.Active++ }, want: "active: 1, want 0"},
		"a ready pod":                     {status: func(s *batchv1.JobStatus) { s.Ready = new(int32(1)) }, want: "ready: 1, want 0"},
		"a terminating pod":               {status: func(s *batchv1.JobStatus) { s.Terminating = new(int32(1)) }, want: "terminating: 1, want 0"},
		"a missing index":                 {status: func(s *batchv1.JobStatus) { s.CompletedIndexes = "0" }, want: "completed indexes: 0, want 0,1"},
		"a failed index that is no index": {status: func(s *batchv1.JobStatus) { s.FailedIndexes = new("1") }, want: "failed indexes: 1, want 0"},
		"an uncounted pod": {status: func(s *batchv1.JobStatus) {
			s.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Failed: []types.UID{"x"}}
		}, want: "uncounted pods: false, want true"},
		"the other condition": {status: func(s *batchv1.JobStatus) { s.Conditions[0].Type = batchv1.JobComplete }, want: "condition: Complete, want Failed"},
		"no condition":        {status: func(s *batchv1.JobStatus) { s.Conditions = nil }, want: "condition: , want Failed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			job, l := endedJob()
			if tc.pods != nil {
				tc.pods(&l)
			}
			if tc.status != nil {
				tc.status(&job.Status)
			}
			problems := verifyPods(job, l)
			if tc.pods == nil {
				problems = append(problems, verifyStatus(job, l, batchv1.JobFailed)...)
			}
			must.Equal(t, "problems", tc.want, strings.Join(problems, "; "))
		})
	}
}

// endedJob is a Job of three indexes, with the kubelet's record of it. Two indexes succeeded
// and one failed. Lists of indexes here always begin with 0, the list of failed ones, too.
func endedJob() (*batchv1.Job, podCounts) {
	job := &batchv1.Job{Spec: jobSpec(batchv1.IndexedCompletion, 3, 3)}
	job.Spec.BackoffLimitPerIndex = new(int32(0))
	job.Status = batchv1.JobStatus{
		Succeeded: 2, Failed: 1, CompletedIndexes: "0,1", FailedIndexes: new("0"),
		Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}},
	}
	return job, podCounts{total: total{seen: 3, succeeded: 2, failed: 1}, indexes: 3}
}

func TestCallsAreCountedByUserOnce(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.log")
	line := func(stage, verb, user, resource, sub string) string {
		return fmt.Sprintf(`{"stage":%q,"verb":%q,"user":{"username":%q},"objectRef":{"resource":%q,"subresource":%q}}`+"\n", stage, verb, user, resource, sub)
	}
	write := func(text string) {
		t.Helper()
		file, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		must.Succeed(t, err)
		defer file.Close()
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	half := line("ResponseComplete", "patch", "a", "pods", "")
	write(line("ResponseComplete", "create", "a", "pods", "") + line("ResponseComplete", "update", "a", "jobs", "status") +
		line("ResponseStarted", "watch", "a", "pods", "") + line("ResponseComplete", "watch", "a", "pods", "") +
		line("ResponseComplete", "create", "b", "pods", "") + half[:20])
	audit := newAuditLog(log)
	first, err := audit.read("a")
	must.Succeed(t, err)
	must.Equal(t, "calls", calls{"create pods": 1, "update jobs/status": 1, "watch pods": 1}, first)
	write(half[20:] + half)
	second, err := audit.read("a")
	must.Succeed(t, err)
	must.Equal(t, "later calls", calls{"patch pods": 2}, second.minus(first))
}

func TestMetricsOfAProgram(t *testing.T) {
	const text = `# HELP d Decisions.
d{rule="a"} 2
d{rule="b"} 3
d_other 100
h_bucket{le="0.1"} 98
h_bucket{le="0.5"} 99
h_bucket{le="+Inf"} 100
`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
	defer server.Close()
	m := metrics{}
	must.Succeed(t, m.scrape(server.URL))
	got := map[string]float64{
		"all":   m.sum("d"),
		"one":   m.sum("d", `rule="b"`),
		"p98":   m.quantile(0.98, "h"),
		"p99":   m.quantile(0.99, "h"),
		"since": m.minus(metrics{`d{rule="a"}`: 1}).sum("d", `rule="a"`),
	}
	must.Equal(t, "values", map[string]float64{"all": 5, "one": 3, "p98": 0.1, "p99": 0.5, "since": 1}, got)
	if none := (metrics{}).quantile(0.5, "h"); !math.IsNaN(none) {
		t.Errorf("a quantile of nothing is %g", none)
	}
}

// A process that computes has used CPU time and memory.
func TestUsageOfAProcess(t *testing.T) {
	before, err := usageOf(os.Getpid())
	must.Succeed(t, err)
	ballast := make([]byte, 64<<20)
	for begin := time.Now(); time.Since(begin) < 10*time.Second; {
		for i := range ballast {
			ballast[i]++
		}
		now, err := usageOf(os.Getpid())
		must.Succeed(t, err)
		if now.cpu > before.cpu && now.peak >= 64<<20 && now.resident <= now.peak {
			return
		}
	}
	t.Errorf("the account of a busy process does not grow from %+v", before)
}

// result is a result of S2, with a makespan and the CPU time of a pod.
func result(contender string, makespan, cpu float64) Result {
	return Result{
		Scenario: "S2-x", Title: "Pods", Contender: contender, Size: Full, Commit: "abc", Pods: 10,
		Figures: Figures{Makespan: makespan, CPUPerPod: cpu}, Calls: map[string]int{"create pods": 10},
	}
}

func sample() []Result {
	return []Result{result(BuiltIn, 10, 1), result(Services, 7, 0.6), result(Embedded, 7.5, 0.5), result(Floor, 6.4, 0.2)}
}

// cellsOf reads a table's rows below the head.
func cellsOf(table string) [][]string {
	var rows [][]string
	for line := range strings.Lines(table) {
		var cells []string
		for _, cell := range strings.Split(strings.Trim(line, "|\n"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		rows = append(rows, cells)
	}
	return rows[2:]
}

func TestGlanceShowsTheRatiosOfTheTwoServices(t *testing.T) {
	behind := result(Services, 13, 1.2)
	behind.Scenario = "S9"
	alone := result(BuiltIn, 10, 1)
	alone.Scenario = "S9"
	want := [][]string{
		{"S2-x", "**0.70**", "", "**0.60**", "", "", "2 of 3"},
		{"S9", "1.30", "", "1.20", "", "", ""},
	}
	must.Equal(t, "rows", want, cellsOf(Glance(append(sample(), alone, behind))))
}

func TestTableShowsWhichBarsAreMet(t *testing.T) {
	want := [][]string{
		{"S2-x", "makespan, s", "10.00", "7.00", "0.70", "7.50", "0.75", "6.40", "≤ 0.8 × built-in; ≤ 1.15 × floor", "met; met", "met; NOT met (1.17 ×)"},
		{"", "CPU a pod, ms", "1.000", "0.600", "0.60", "0.500", "0.50", "0.200", "≤ 0.5 × built-in", "NOT met (0.60 ×)", "met"},
	}
	must.Equal(t, "rows", want, cellsOf(Table(sample())))
}

func TestRepetitionsGiveMedians(t *testing.T) {
	runs := []Result{
		result(BuiltIn, 9, 1), result(Floor, 4, 1), result(BuiltIn, 30, 5), result(Floor, 6, 3), result(BuiltIn, 10, 2),
	}
	got := map[string]Figures{}
	for _, r := range medians(runs) {
		got[r.Contender] = r.Figures
		if want := map[string]int{BuiltIn: 3, Floor: 2}[r.Contender]; r.Runs != want {
			t.Errorf("%s: medians of %d runs, want %d", r.Contender, r.Runs, want)
		}
	}
	want := map[string]Figures{BuiltIn: {Makespan: 10, CPUPerPod: 2}, Floor: {Makespan: 5, CPUPerPod: 2}}
	must.Equal(t, "figures", want, got)
	if runs[0].Figures[Makespan] != 9 {
		t.Error("a result was changed")
	}
}

func TestGrowthComparesTheLargestWithTheSmallest(t *testing.T) {
	var all []Result
	for pods, cpu := range map[int]float64{1000: 2, 10_000: 3, 100_000: 5} {
		name := fmt.Sprintf("S8-%d", pods)
		all = append(all, Result{Scenario: name, Contender: Embedded, Pods: pods, Figures: Figures{CPUPerEvent: cpu}})
	}
	got := growth(all)
	want := []Result{{Scenario: growthName, Title: "S8-100000, compared with S8-1000", Contender: Embedded, Figures: Figures{CPUGrowth: 2.5}}}
	must.Equal(t, "growth", want, got)
	if verdict := targetsFor(growthName, CPUGrowth)[0].assess(map[string]Result{Embedded: got[0]}, Embedded); verdict != "NOT met" {
		t.Errorf("2.5 is %q with a target of 2", verdict)
	}
}

func TestPlotsShowEachContendersValue(t *testing.T) {
	plot, err := Plot(Makespan, sample())
	must.Succeed(t, err)
	var got []string
	for decoder := xml.NewDecoder(strings.NewReader(plot)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		must.Succeed(t, err)
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			got = append(got, string(text))
		}
	}
	slices.Sort(got)
	want := []string{"10.00", "6.40", "7.00", "7.50", "S2-x", "built-in", "embedded", "floor", "makespan, s", "two services"}
	must.Equal(t, "texts of the plot", want, got)
	if plot, err := Plot(HeldMemory, sample()); plot != "" || err != nil {
		t.Errorf("a figure that nobody has is drawn: %d bytes, error %v", len(plot), err)
	}
}

func TestDocumentsKeepWhatPeopleWrote(t *testing.T) {
	dir := t.TempDir()
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, name))
		must.Succeed(t, err)
		return string(text)
	}
	write := func(results ...Result) {
		t.Helper()
		must.Succeed(t, WriteDocs(dir, Measurement{Machine: "2 processors", Results: results}))
	}
	byHand := "By hand.\n" + pageBegin + pageEnd + "\nAlso by hand.\n"
	must.Succeed(t, os.WriteFile(filepath.Join(dir, pageFile), []byte(byHand), 0o600))
	write(sample()...)
	first := read(pageFile)
	write(sample()...)
	if diff := cmp.Diff(first, read(pageFile)); diff != "" {
		t.Errorf("the same results change the page (-before +after):\n%s", diff)
	}
	huge := result(BuiltIn, 500, 1)
	huge.Scenario, huge.Size = "S8-100000", Huge
	write(huge)
	for _, part := range []string{"By hand.\n", "Also by hand.\n", "| S2-x", "| S8-100000", "performance-cpu.svg"} {
		if page := read(pageFile); !strings.Contains(page, part) {
			t.Errorf("the page lacks %q:\n%s", part, page)
		}
	}
	for _, part := range []string{`"commit": "abc"`, `"size": "` + string(Full) + `"`, `"size": "` + string(Huge) + `"`} {
		if data := read(dataFile); !strings.Contains(data, part) {
			t.Errorf("the data lacks %q:\n%s", part, data)
		}
	}
	small := result(BuiltIn, 1, 1)
	small.Scenario, small.Size = "S1", Small
	write(small)
	if after := read(pageFile); strings.Contains(after, "| S2-x") || !strings.Contains(after, "| S8-100000") {
		t.Errorf("results of another size stay, or huge ones go:\n%s", after)
	}
}

// An executor that loses events makes fewer API calls, so a result that does not say
// how many were lost is marked.
func TestResultsWithoutACountOfLostEventsAreMarked(t *testing.T) {
	lossy, sound := result(Services, 7, 1), result(Services, 9, 1)
	lossy.Scenario, sound.Scenario = "S5", "S5"
	sound.Figures[EventsLost] = 0
	for name, tc := range map[string]struct {
		result Result
		want   string
	}{
		"not counted": {lossy, "S5 ¹"},
		"counted":     {sound, "S5"},
	} {
		t.Run(name, func(t *testing.T) {
			results := []Result{tc.result}
			if got := cellsOf(Glance(results))[0][0]; got != tc.want {
				t.Errorf("the scenario is called %q, want %q", got, tc.want)
			}
			if got, want := eventsNote(results) != "", tc.want != "S5"; got != want {
				t.Errorf("there is a note: %t, want %t", got, want)
			}
		})
	}
}

// The documents of the repository show the data beside them.
func TestDocumentsShowTheData(t *testing.T) {
	const dir = "../../../docs"
	if *rewrite {
		must.Succeed(t, WriteDocs(dir, recorded(t, dir)))
	}
	want, err := documents(dir, recorded(t, dir))
	must.Succeed(t, err)
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(dir, name))
		must.Succeed(t, err)
		if diff := cmp.Diff(text, string(got)); diff != "" {
			t.Errorf("%s does not show %s; write it with go test ./plane/bench -run TestDocuments -args -rewrite (-want +got):\n%s", name, dataFile, diff)
		}
	}
}

func recorded(t *testing.T, dir string) Measurement {
	t.Helper()
	m, err := readData(filepath.Join(dir, dataFile))
	must.Succeed(t, err)
	if len(m.Results) == 0 {
		t.Fatalf("%s holds no results", dataFile)
	}
	return m
}

// A status that breaks an invariant on the way is found, although the last one is right. Each of these writes is two problems:
// the number is wrong, and no step of the specification changes it.
func TestAStatusOnTheWayIsHeldToTheInvariants(t *testing.T) {
	o := newObserver(nil)
	o.announce("ns", "a")
	job := &batchv1.Job{}
	job.Namespace, job.Name, job.UID = "ns", "a", "job-a"
	watched := o.store()
	version := func(failed int32) *batchv1.Job {
		job = job.DeepCopy()
		job.Status.Failed = failed
		return job
	}
	for _, failed := range []int32{0, 1, 0} {
		must.Succeed(t, watched.Update(version(failed)))
	}
	if found := o.problems("ns"); len(found) != 4 {
		t.Errorf("found %q, want two problems of each of two writes", found)
	}
	// The watch breaks off, and a list shows what has become of the Job meanwhile.
	must.Succeed(t, watched.Replace([]any{version(7)}, "8"))
	if found := o.problems("ns"); len(found) != 4 {
		t.Errorf("found %q after a list, want no further problem", found)
	}
	must.Succeed(t, watched.Update(version(9)))
	if found := o.problems("ns"); len(found) != 6 {
		t.Errorf("found %q after the list and a version, want those of a third write", found)
	}
	if found := o.problems("other"); len(found) > 0 {
		t.Errorf("found %q in another namespace, want nothing", found)
	}
}
