package playground

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/web/browser"
)

// folder has the built page, and the command.
var folder string

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "playground"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// built builds the page once, when a test needs it.
var built = sync.OnceValue(func() error {
	for _, args := range [][]string{
		{"../../../tools/playground.sh", filepath.Join(folder, "page")},
		{"go", "build", "-o", filepath.Join(folder, "kubectl-jobpolicy"), "jobpolicy.dev/services/cmd/kubectl-jobpolicy"},
	} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = map[bool]string{true: "../../../services", false: "."}[args[0] == "go"]
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
})

// open shows the page in a browser.
func open(t *testing.T) context.Context {
	t.Helper()
	ctx := browser.New(t)
	must.Succeed(t, built())
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(folder, "page"))))
	t.Cleanup(server.Close)
	load(ctx, t, server.URL)
	return ctx
}

func load(ctx context.Context, t *testing.T, url string) {
	t.Helper()
	browser.Do(ctx, t, chromedp.Navigate(url))
	browser.Await(ctx, t, `document.documentElement.dataset.ready`)
}

// play puts a state into the fields and plays it.
func play(ctx context.Context, t *testing.T, state map[string]string) {
	t.Helper()
	data, err := json.Marshal(state)
	must.Succeed(t, err)
	browser.Eval[bool](ctx, t, fmt.Sprintf(`(fill(%s), run().then(() => true))`, data))
}

func contains(t *testing.T, what, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Errorf("%s: %q, want %q in it", what, got, want)
	}
}

// One page serves all of these tests: it takes seconds to load, and each test fills in
// what it needs.
func TestPage(t *testing.T) {
	ctx := open(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, context.Context)
	}{
		{"the first screen shows a life at once", testFirstScreen},
		{"the examples are as the command says", testExamples},
		{"a person plays", testPersonPlays},
		{"problems name the field", testProblems},
		{"text of others stays text", testHarmfulText},
		{"the calendar of a CronJob", testCalendar},
		{"a link holds the state", testLink},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, ctx) })
	}
}

// In light and dark, on a desk and on a phone.
func testFirstScreen(t *testing.T, ctx context.Context) {
	contains(t, "verdict", browser.Text(ctx, t, "#verdict"), "Failed (FailedIndexes) after 2m55s")
	contains(t, "engine", browser.Text(ctx, t, "#says"), "the Job fails (FailedIndexes")
	contains(t, "rule", browser.Text(ctx, t, "#rules .decided"), "decides: indexes done: 10 of 10, failed ones 3")
	contains(t, "counters", browser.Text(ctx, t, "#counters"), "7 of 10")
	contains(t, "conditions", browser.Text(ctx, t, "#conditions"), "FailureTarget")
	contains(t, "log", browser.Text(ctx, t, "#log"), "2 pods failed (index 0,2): exit code 1")
	if got := browser.Eval[int](ctx, t, `document.querySelectorAll('#chart rect.run, #chart rect.succeeded, #chart rect.failed').length`); got != 14 {
		t.Errorf("%d bars of pods, want 14", got)
	}
	t.Logf("the engine is ready %d ms after its script", browser.Eval[int](ctx, t, `Number(document.documentElement.dataset.engineMs)`))
	for _, dark := range []bool{false, true} {
		browser.Dark(ctx, t, dark)
		suffix := map[bool]string{false: "light", true: "dark"}[dark]
		browser.Screenshot(ctx, t, "playground-"+suffix)
		browser.Size(ctx, t, 390, 844)
		fits(ctx, t)
		browser.Screenshot(ctx, t, "playground-phone-"+suffix)
		browser.Size(ctx, t, 1280, 900)
	}
}

// fits says that nobody must scroll sideways.
func fits(ctx context.Context, t *testing.T) {
	t.Helper()
	if wide := browser.Eval[int](ctx, t, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
		t.Errorf("the page is %d pixels too wide", wide)
	}
}

// Opened as a file, the page works without any server.
func TestOpensAsAFile(t *testing.T) {
	ctx := browser.New(t)
	must.Succeed(t, built())
	load(ctx, t, "file://"+filepath.Join(folder, "page", "index.html"))
	contains(t, "verdict", browser.Text(ctx, t, "#verdict"), "Failed (FailedIndexes)")
}

// Every example plays, and the command says the same about it.
func testExamples(t *testing.T, ctx context.Context) {
	for i := range browser.Eval[int](ctx, t, `presets.length`) {
		title := browser.Eval[string](ctx, t, fmt.Sprintf(`(fill(presetState(presets[%d])), run().then(() => presets[%d].title))`, i, i))
		t.Run(title, func(t *testing.T) {
			if problem := browser.Eval[string](ctx, t, `get('problem').textContent`); problem != "" {
				t.Fatalf("the page says %q", problem)
			}
			got := browser.Eval[string](ctx, t, `(({job, verdict, reason, message, makespanSeconds, timeline, pods, status}) =>
				JSON.stringify({job, verdict, reason, message, makespanSeconds, timeline, pods, status}))(answer.play)`)
			manifest := filepath.Join(t.TempDir(), "job.yaml")
			must.Succeed(t, os.WriteFile(manifest, []byte(browser.Eval[string](ctx, t, `get('manifest').value`)), 0o600))
			line := strings.Replace(browser.Eval[string](ctx, t, `get('command').textContent`), "kubectl jobpolicy", filepath.Join(folder, "kubectl-jobpolicy"), 1)
			cmd := exec.Command("bash", "-c", strings.Replace(line, "job.yaml", manifest, 1)+" -o json")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", line, err, out)
			}
			if want := normal(t, out); normal(t, []byte(got)) != want {
				t.Errorf("%s:\npage:    %s\ncommand: %s", line, normal(t, []byte(got)), want)
			}
		})
	}
}

// normal is JSON in one order, without what is not there.
func normal(t *testing.T, data []byte) string {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	delete(v, "stopped")
	out, err := json.Marshal(v)
	must.Succeed(t, err)
	return string(out)
}

// A person adds a line, moves through the play by keyboard, and plays it.
func testPersonPlays(t *testing.T, ctx context.Context) {
	browser.Eval[bool](ctx, t, `(fill(presetState(presets.find((p) => p.file === 'pod-failure-policy.yaml'))), fill({...state(), script: ''}), run().then(() => true))`)
	contains(t, "verdict", browser.Text(ctx, t, "#verdict"), "Complete (CompletionsReached)")
	browser.Do(ctx, t, chromedp.Click(chromedp.CSS("#add-line")))
	browser.Await(ctx, t, `get('script').value === 'pod 0:fail(42)@30s'`)
	contains(t, "verdict", browser.Text(ctx, t, "#verdict"), "Failed (PodFailurePolicy) after")
	contains(t, "announced", browser.Eval[string](ctx, t, `get('announce').textContent`), "Failed (PodFailurePolicy)")
	contains(t, "reason", browser.Text(ctx, t, "#verdict-more"), "exit code 42")

	browser.Do(ctx, t, chromedp.Focus(chromedp.CSS("#moment")), chromedp.KeyEvent(kb.Home))
	browser.Await(ctx, t, `get('clock').textContent === '0s'`)
	contains(t, "engine", browser.Text(ctx, t, "#says"), "create pods: 3")
	contains(t, "conditions", browser.Text(ctx, t, "#conditions"), "none yet")
	browser.Do(ctx, t, chromedp.KeyEvent(kb.ArrowRight))
	browser.Await(ctx, t, `get('clock').textContent === '1s'`)
	contains(t, "spoken", browser.Eval[string](ctx, t, `get('moment').getAttribute('aria-valuetext')`), "1s: active: 3 of 3 wanted")

	browser.Do(ctx, t, chromedp.Click(chromedp.CSS("#toggle")))
	browser.Await(ctx, t, `get('toggle').textContent === 'Pause' && Number(chart.cursor.getAttribute('x1')) > chart.x(2)`)
	browser.Do(ctx, t, chromedp.Click(chromedp.CSS("#toggle")))
	browser.Await(ctx, t, `get('toggle').textContent === 'Play'`)
	browser.Do(ctx, t, chromedp.Click(chromedp.CSS("#log li:last-child button")))
	browser.Await(ctx, t, `get('clock').textContent === '32s'`)
}

// A link shows the whole state to somebody else.
func testLink(t *testing.T, ctx context.Context) {
	browser.Eval[bool](ctx, t, `(fill({...presetState(presets[0]), script: 'pod 5:evict@7s', runtime: '90s', seed: '7', failRate: '0.05', now: '2026-03-26', lastRun: '2026-03-20', zone: 'Europe/Paris'}), run().then(() => true))`)
	hash := browser.Eval[string](ctx, t, `(pick(3), remember().then(() => location.hash.slice(1)))`)
	clock := browser.Text(ctx, t, "#clock")
	url := browser.Eval[string](ctx, t, `location.origin + location.pathname`)
	verdict := browser.Text(ctx, t, "#verdict")
	browser.Do(ctx, t, chromedp.Navigate("about:blank"))
	load(ctx, t, url+"#"+hash)
	if got := browser.Text(ctx, t, "#verdict"); got != verdict {
		t.Errorf("the link shows %q, want %q", got, verdict)
	}
	if got := browser.Text(ctx, t, "#clock"); got != clock {
		t.Errorf("the link shows the moment %s, want %s", got, clock)
	}
	for field, want := range map[string]string{
		"script": "pod 5:evict@7s", "runtime": "90s", "seed": "7", "preset": "", "failRate": "0.05", "now": "2026-03-26", "lastRun": "2026-03-20", "zone": "Europe/Paris",
	} {
		if got := browser.Eval[string](ctx, t, fmt.Sprintf(`get('%s').value`, field)); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
	for _, damaged := range []string{"1.x", "1." + strings.Repeat("A", 99), "nothing", "1.%00", "2." + hash[2:], hash[:len(hash)/2]} {
		browser.Eval[bool](ctx, t, fmt.Sprintf(`(history.replaceState(null, '', '#%s'), load().then(() => true))`, damaged))
		contains(t, damaged, browser.Text(ctx, t, "#problem"), "This link is damaged")
		contains(t, damaged, browser.Text(ctx, t, "#verdict"), "Failed (FailedIndexes)")
	}
}

const small = `apiVersion: batch/v1
kind: Job
metadata:
  name: small
spec:
  completions: 2
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: x}
`

// What is wrong is named by its field, and says what was expected.
func testProblems(t *testing.T, ctx context.Context) {
	with := func(field, text string) map[string]string { return map[string]string{"manifest": small, field: text} }
	cases := map[string]struct {
		state map[string]string
		want  string
	}{
		"an unknown field":      {with("manifest", strings.Replace(small, "completions", "completion", 1)), "spec.completion: unknown field: expected a field of batch/v1"},
		"another type":          {with("manifest", strings.Replace(small, "completions: 2", "completions: two", 1)), "spec.completions"},
		"no restart policy":     {with("manifest", strings.Replace(small, "      restartPolicy: Never\n", "", 1)), "spec.template.spec.restartPolicy: is required: expected Never or OnFailure"},
		"another kind":          {with("manifest", "apiVersion: v1\nkind: Pod\n"), "expected a Job or CronJob of batch/v1"},
		"nothing":               {with("manifest", ""), "expected a Job or CronJob of batch/v1"},
		"no YAML":               {with("manifest", "a: [b"), "manifest: the document that begins on line 1"},
		"too many pods":         {with("manifest", strings.Replace(small, "completions: 2", "completions: 1001", 1)), "spec.completions: expected at most 1000 on this page, got 1001"},
		"a script's line":       {with("script", "# fine\nkill 3"), `script: expected pod, scale, suspend-at, resume-at, delete-at, quota-until, node-lost-at or node-back-at in front, got "kill" Line 2`},
		"a runtime":             {with("runtime", "soon"), `runtime: "soon": expected a duration`},
		"a share":               {with("failRate", "2"), "share that fails: expected a share from 0 to 1"},
		"a seed":                {with("seed", "-1"), "seed: expected a whole number from 0 on"},
		"a CronJob's last run":  {map[string]string{"manifest": cron("UTC"), "now": "2026-01-01", "lastRun": "tomorrow"}, "last run: expected a time such as"},
		"a CronJob's time zone": {map[string]string{"manifest": cron("Mars/Olympus"), "now": "2026-01-01"}, "spec.timeZone"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			play(ctx, t, tc.state)
			contains(t, "problem", browser.Text(ctx, t, "#problem"), tc.want)
			if shown := browser.Eval[bool](ctx, t, `!get('play').hidden`); shown {
				t.Error("a play is shown, too")
			}
		})
	}
	play(ctx, t, with("manifest", strings.Replace(small, "completions", "completion", 1)))
	browser.Do(ctx, t, chromedp.Click(chromedp.CSS("#problem button")))
	if got := browser.Eval[string](ctx, t, `get('manifest').value.slice(get('manifest').selectionStart, get('manifest').selectionEnd)`); got != "  completion: 2" {
		t.Errorf("the button selects %q", got)
	}
	browser.Screenshot(ctx, t, "playground-problem")
}

func cron(zone string) string {
	return "apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: c\nspec:\n  schedule: 30 2 * * *\n  timeZone: " + zone +
		"\n  jobTemplate:\n    spec:\n      template:\n        spec:\n          restartPolicy: Never\n          containers:\n          - {name: main, image: x}\n"
}

// Text of others stays text: neither a manifest nor a link runs a script. A dialog or an
// error would fail the test by itself.
func testHarmfulText(t *testing.T, ctx context.Context) {
	const bad = `<img src=x onerror=alert(1)><script>alert(2)</script>"'><svg onload=alert(3)>`
	quoted := strings.ReplaceAll(bad, `'`, `''`)
	cases := map[string]map[string]string{
		"a name":         {"manifest": strings.Replace(small, "name: small", "name: '"+quoted+"'", 1)},
		"a container":    {"manifest": strings.Replace(small, "name: main", "name: '"+quoted+"'", 1), "script": "pod *:fail(3)@1s"},
		"a field":        {"manifest": small + "  '" + quoted + "': 1\n"},
		"a script":       {"manifest": small, "script": bad},
		"a comment":      {"manifest": small, "script": "pod 0:fail # " + bad},
		"a runtime":      {"manifest": small, "runtime": bad},
		"a time":         {"manifest": cron("UTC"), "now": bad},
		"a zone":         {"manifest": strings.Replace(cron("UTC"), "  timeZone: UTC\n", "", 1), "now": "2026-01-01", "zone": bad},
		"a schedule":     {"manifest": strings.Replace(cron("UTC"), "30 2 * * *", "'"+quoted+"'", 1), "now": "2026-01-01"},
		"no YAML at all": {"manifest": bad + "\n: : ["},
	}
	for name, state := range cases {
		t.Run(name, func(t *testing.T) {
			play(ctx, t, state)
			if n := browser.Eval[int](ctx, t, `document.querySelectorAll('img, main script, svg[onload]').length`); n != 0 {
				t.Errorf("the text made %d elements", n)
			}
			hash := browser.Eval[string](ctx, t, `location.hash`)
			browser.Eval[bool](ctx, t, fmt.Sprintf(`(history.replaceState(null, '', '%s'), load().then(() => true))`, hash))
			if n := browser.Eval[int](ctx, t, `document.querySelectorAll('img, main script, svg[onload]').length`); n != 0 {
				t.Errorf("the link made %d elements", n)
			}
		})
	}
}

// A CronJob's calendar has its runs, those missed, and the changes of the clock.
func testCalendar(t *testing.T, ctx context.Context) {
	play(ctx, t, map[string]string{"manifest": cron("Europe/Berlin"), "now": "2026-03-26", "lastRun": "2026-03-20T01:30:00Z"})
	contains(t, "missed", browser.Text(ctx, t, "#calendar-missed"), "missed since 2026-03-20T01:30:00Z: 5")
	contains(t, "next", browser.Text(ctx, t, "#calendar-next"), "clocks are set forward from 02:00 to 03:00 (CEST); a run in the hour between is left out")
	contains(t, "verdict", browser.Text(ctx, t, "#verdict"), "A Job of CronJob c: Complete (CompletionsReached)")
	for selector, want := range map[string]int{"table": 12, "td.change": 2, "td.missed": 5, "td.today": 1} {
		if got := browser.Eval[int](ctx, t, fmt.Sprintf(`document.querySelectorAll('#calendar-months %s').length`, selector)); got != want {
			t.Errorf("%d of %s, want %d", got, selector, want)
		}
	}
	// The clock change in March leaves its run out, that in October does not.
	if got := browser.Eval[int](ctx, t, `document.querySelectorAll('#calendar-months td.change.runs').length`); got != 1 {
		t.Errorf("%d days of a clock change have runs, want 1", got)
	}
	browser.Screenshot(ctx, t, "playground-cronjob")
	browser.Size(ctx, t, 390, 844)
	fits(ctx, t)
	browser.Size(ctx, t, 1280, 900)
	browser.Eval[bool](ctx, t, `(fill({...state(), now: '2026-05-01', lastRun: ''}), run().then(() => true))`)
	browser.Do(ctx, t, chromedp.Click(chromedp.CSS("#next-change")))
	browser.Await(ctx, t, `get('now').value === '2026-10-24'`)
	contains(t, "next", browser.Text(ctx, t, "#calendar-next"), "clocks are set back from 03:00 to 02:00")
}
