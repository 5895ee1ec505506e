package playground

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/engine/schedule"
	"jobpolicy.dev/engine/simulate"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/services/internal/testenv"
)

const job = `apiVersion: batch/v1
kind: Job
metadata:
  name: small
spec:
  completions: 2
  completionMode: Indexed
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: x}
`

const cron = `apiVersion: batch/v1
kind: CronJob
metadata:
  name: nightly
spec:
  schedule: "30 2 * * *"
  timeZone: Europe/Berlin
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - {name: main, image: x}
`

// A play does not say that pods get more if the template asks for the maximum already.
func TestAPlayRaisesOnlyWhatThePodsGetMoreOf(t *testing.T) {
	for memory, want := range map[string]bool{"64Mi": true, "512Mi": false, "1Gi": false} {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{wire.Policy: "{job: {nextTryResources: {resource: Memory, max: 512Mi}}}"}}}
		j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		j.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)},
		}}}
		sc, err := Scenario(j, simulate.Scenario{})
		if err != nil {
			t.Fatal(err)
		}
		if got := sc.Spec.GetOptions().GetNextTryResources() != nil; got != want {
			t.Errorf("template with %s: raises %t, want %t", memory, got, want)
		}
	}
}

// The cluster gives a Job of a CronJob the options of the template, and none of the CronJob's own.
func TestAJobOfACronJobHasTheOptionsOfItsTemplate(t *testing.T) {
	retryAfter := func(delay string) map[string]string {
		return map[string]string{wire.Policy: "{job: {retryDelay: {delaysSeconds: [" + delay + "]}}}"}
	}
	c := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "ns", Annotations: retryAfter("1")}}
	c.Spec.JobTemplate.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	c.Spec.JobTemplate.Annotations = retryAfter("2")
	sc, err := Scenario(JobOf(c), simulate.Scenario{})
	if err != nil {
		t.Fatal(err)
	}
	if got := sc.Spec.GetOptions().GetRetryDelay().GetDelaysSeconds(); !slices.Equal(got, []int32{2}) {
		t.Errorf("the Job retries after %v, want those of the template: 2", got)
	}
	if sc.Job.GetName() != "nightly" || sc.Job.GetNamespace() != "ns" {
		t.Errorf("it is %v, want name and namespace of the CronJob", sc.Job)
	}
}

// Every manifest of the documents is an example of the page, and can be opened.
func TestDocumentsManifests(t *testing.T) {
	files, err := filepath.Glob("../../../deploy/examples/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d manifests, error %v", len(files), err)
	}
	presets := testenv.ReadFile(t, "../../cmd/jobpolicy-playground/web/presets.js")
	for _, file := range files {
		if !strings.Contains(string(presets), "file: '"+filepath.Base(file)+"'") {
			t.Errorf("no example of the page has %s", filepath.Base(file))
		}
		data := testenv.ReadFile(t, file)
		var p Playground
		a := p.Open(State{Manifest: string(data), Now: "2026-01-01"})
		if a.Problem != nil || a.Play == nil {
			t.Errorf("%s: problem %v", filepath.Base(file), a.Problem)
		}
	}
}

// A JobPolicy may stand beside the Job that names it.
func TestAPolicyBesideTheManifest(t *testing.T) {
	named := strings.Replace(job, "  name: small\n", "  name: small\n  annotations: {jobpolicy.dev/policy: soon}\n", 1)
	policy := "apiVersion: jobpolicy.dev/v1alpha1\nkind: JobPolicy\nmetadata: {name: soon}\nspec: {job: {startDeadlineSeconds: SECONDS}}\n---\n"
	var p Playground
	a := p.Open(State{Manifest: strings.Replace(policy, "SECONDS", "5", 1) + named, Script: "pod *:stuck"})
	if a.Problem != nil {
		t.Fatal(a.Problem)
	}
	if a.Play.Reason != "StartDeadlineExceeded" {
		t.Errorf("with the policy it ends as %s (%s), want StartDeadlineExceeded", a.Play.Verdict, a.Play.Reason)
	}
	a = p.Open(State{Manifest: strings.Replace(policy, "SECONDS", "0", 1) + named, Script: "pod *:stuck"})
	if a.Problem == nil || a.Problem.Path != "spec.job.startDeadlineSeconds" {
		t.Errorf("a policy that is invalid: problem %+v", a.Problem)
	}
}

func TestMoments(t *testing.T) {
	var p Playground
	if m := p.Moment(0); m != nil {
		t.Errorf("a moment before any play: %v", m)
	}
	a := p.Open(State{Manifest: job, Script: "pod 1:fail(42)@30s"})
	if a.Problem != nil {
		t.Fatal(a.Problem)
	}
	if a.Play.Verdict != "Failed" || a.Play.Reason != "BackoffLimitExceeded" || !a.Play.Indexed {
		t.Errorf("verdict %s (%s), indexed %v", a.Play.Verdict, a.Play.Reason, a.Play.Indexed)
	}
	m := p.Moment(len(a.Play.Moments) - 1)
	if m == nil || m.Clock != "1m32s" {
		t.Fatalf("the last of the moments %v: %v", a.Play.Moments, m)
	}
	var decides string
	for _, d := range m.Decisions {
		for _, r := range d.Rules {
			if r.Decided && decides == "" {
				decides = r.Name
			}
		}
	}
	if decides != "backoffLimitExceeded" {
		t.Errorf("%q decides, want backoffLimitExceeded: %+v", decides, m.Decisions)
	}
	if p.Moment(-1) != nil || p.Moment(len(a.Play.Moments)) != nil {
		t.Error("there are moments outside of the play")
	}
}

// The page plays what the kubelet does, and refuses what it cannot play, as the command does.
func TestContainersThatAreRestarted(t *testing.T) {
	file := func(name string) string {
		return string(testenv.ReadFile(t, "../plugin/testdata/kubelet/"+name+".yaml"))
	}
	a := new(Playground).Open(State{Manifest: file("container-always")})
	if a.Problem != nil || a.Play.Verdict != "Unfinished" || !strings.Contains(a.Play.Ending, "container ui is restarted for ever") {
		t.Errorf("problem %v, play %+v", a.Problem, a.Play)
	}
	a = new(Playground).Open(State{Manifest: file("restart-all")})
	if a.Problem == nil || !strings.Contains(a.Problem.Text, "restartPolicyRules[0].action: RestartAllContainers is not played") {
		t.Errorf("problem %v", a.Problem)
	}
}

func TestCalendar(t *testing.T) {
	var p Playground
	a := p.Open(State{Manifest: cron, Now: "2026-03-26", LastRun: "2026-03-20T01:30:00Z"})
	if a.Problem != nil {
		t.Fatal(a.Problem)
	}
	c := a.Calendar
	if len(c.Months) != months || c.Months[0].Title != "March 2026" || c.Months[0].First != 6 {
		t.Errorf("months %d, the first %q begins on day %d", len(c.Months), c.Months[0].Title, c.Months[0].First)
	}
	day := func(n int) Day { return c.Months[0].Days[n-1] }
	for n, want := range map[int]Day{20: {}, 21: {Missed: 1}, 25: {Missed: 1}, 26: {Runs: 1, Today: true}, 28: {Runs: 1}} {
		if got := day(n); got != want {
			t.Errorf("March %d: %+v, want %+v", n, got, want)
		}
	}
	if got := day(29); got.Runs != 0 || !strings.Contains(got.Change, "set forward") {
		t.Errorf("March 29: %+v", got)
	}
	if c.NextChange != "2026-03-28" || !strings.HasPrefix(c.Missed, "missed since 2026-03-20T01:30:00Z: 5") {
		t.Errorf("next change %q, missed %q", c.NextChange, c.Missed)
	}
}

// Every answer of the page to what is wrong names the field of the page.
// In Havana, the 8th of March 2026 begins at 1 o'clock.
func TestCalendarWhereTheClockSkipsMidnight(t *testing.T) {
	zoned := strings.NewReplacer("30 2 * * *", "0 9 * * 1", "Europe/Berlin", "America/Havana").Replace(cron)
	a := new(Playground).Open(State{Manifest: zoned, Now: "2026-03-01T12:00:00Z"})
	if a.Problem != nil {
		t.Fatal(a.Problem)
	}
	march := a.Calendar.Months[0]
	for i, day := range march.Days {
		want := int64(0)
		if (i+march.First)%7 == 0 {
			want = 1
		}
		if day.Runs != want {
			t.Errorf("%s, day %d: %d runs, want %d", march.Title, i+1, day.Runs, want)
		}
	}
	if len(march.Days) != 31 || !march.Days[0].Today || march.Days[7].Change == "" {
		t.Errorf("%d days, the first %+v, the 8th %+v", len(march.Days), march.Days[0], march.Days[7])
	}
}

// The runs of an interval count from the last one, or from now.
func TestCalendarOfAnInterval(t *testing.T) {
	interval := strings.NewReplacer("30 2 * * *", "@every 36h", "Europe/Berlin", "UTC").Replace(cron)
	for lastRun, want := range map[string]struct {
		next   string
		runs   []int // days of March
		missed []int
	}{
		"":                     {next: "2026-03-27T12:00:00Z", runs: []int{27, 29, 30}},
		"2026-03-22T06:00:00Z": {next: "2026-03-26T18:00:00Z", runs: []int{26, 28, 29, 31}, missed: []int{23, 25}},
	} {
		a := new(Playground).Open(State{Manifest: interval, Now: "2026-03-26", LastRun: lastRun})
		if a.Problem != nil {
			t.Fatal(a.Problem)
		}
		if got := a.Calendar.Next[0].At.Format(time.RFC3339); got != want.next {
			t.Errorf("last run %q: next run %s, want %s", lastRun, got, want.next)
		}
		var runs, missed []int
		for i, day := range a.Calendar.Months[0].Days {
			for range day.Runs {
				runs = append(runs, i+1)
			}
			for range day.Missed {
				missed = append(missed, i+1)
			}
		}
		if !slices.Equal(runs, want.runs) || !slices.Equal(missed, want.missed) {
			t.Errorf("last run %q: runs on %v and missed ones on %v, want %v and %v", lastRun, runs, missed, want.runs, want.missed)
		}
	}
}

// A CronJob that jobpolicy runs has spec.suspend: true, and is not suspended.
func TestCalendarOfACronJobHandedOver(t *testing.T) {
	handedOver := strings.NewReplacer("name: nightly", "name: nightly\n  annotations: {jobpolicy.dev/managed-by: a/b}", "spec:\n  schedule", "spec:\n  suspend: true\n  schedule").Replace(cron)
	paused := strings.Replace(handedOver, "a/b", "a/b, jobpolicy.dev/suspend: 'true'", 1)
	for text, want := range map[string]bool{handedOver: false, paused: true} {
		if a := new(Playground).Open(State{Manifest: text, Now: "2026-03-01T12:00:00Z"}); a.Problem != nil || a.Calendar.Suspend != want {
			t.Errorf("problem %v, suspended: want %t, of\n%s", a.Problem, want, text)
		}
	}
}

func TestProblems(t *testing.T) {
	cases := map[string]struct {
		state State
		want  string
	}{
		"a large manifest":     {State{Manifest: strings.Repeat("#", maxManifest+1)}, "manifest: expected at most 256 KiB, got 256"},
		"an unknown field":     {State{Manifest: job + "  x: 1\n"}, "manifest: unknown field"},
		"too much parallelism": {State{Manifest: strings.Replace(job, "completions: 2\n  completionMode: Indexed", "parallelism: 2000000000", 1)}, "manifest: expected at most 1000 on this page"},
		"a large scale":        {State{Manifest: job, Script: "scale 20000@1s"}, "script: expected at most 1000 pods"},
		"a node that is back":  {State{Manifest: job, Script: "node-back-at 5s"}, "script: node-back-at: expected a time after the node was lost, got 5s"},
		"a quota":              {State{Manifest: job, Script: "quota-until noon"}, "script: expected a duration above 0"},
		"a scale":              {State{Manifest: job, Script: "scale x"}, "script: "},
		"a time of suspension": {State{Manifest: job, Script: "suspend-at"}, `script: expected a duration above 0, such as 30s or 1h30m, got ""`},
		"no time":              {State{Manifest: cron}, "now: is required"},
		"a last run to come":   {State{Manifest: cron, Now: "2026-01-01", LastRun: "2026-01-02"}, "lastRun: expected a time that is not after now"},
		"a far time":           {State{Manifest: cron, Now: "9999-01-01"}, "now: expected a time such as"},
		"a zone":               {State{Manifest: strings.Replace(cron, "  timeZone: Europe/Berlin\n", "", 1), Now: "2026-01-01", Zone: "Mars"}, "zone: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var p Playground
			a := p.Open(tc.state)
			if a.Problem == nil || !strings.HasPrefix(a.Problem.Error(), tc.want) || a.Play != nil {
				t.Errorf("problem %v, want %q", a.Problem, tc.want)
			}
		})
	}
}

// A day of many runs is counted, and an endless play stops.
func TestLargeAnswers(t *testing.T) {
	var p Playground
	a := p.Open(State{Manifest: strings.Replace(cron, "30 2 * * *", "* * * * *", 1), Now: "2026-03-26"})
	if a.Problem != nil || a.Calendar.Months[1].Days[0].Runs <= schedule.CountLimit {
		t.Errorf("problem %v, %d runs on a day, want many", a.Problem, a.Calendar.Months[1].Days[0].Runs)
	}
	endless := strings.Replace(job, "backoffLimit: 0", "backoffLimit: 2147483647", 1) + `  podFailurePolicy:
    rules:
    - action: Ignore
      onPodConditions:
      - type: DisruptionTarget
`
	a = p.Open(State{Manifest: endless, Script: "pod *:evict@1s"})
	if a.Problem != nil || a.Play.Verdict != "Unfinished" || a.Play.Ending != "more than 1000 pods were created" {
		t.Errorf("problem %v, play %s: %s", a.Problem, a.Play.Verdict, a.Play.Ending)
	}
}
