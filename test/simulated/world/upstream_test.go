package world

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/services/differences"
)

// A finding is one that docs/upstream-findings.md tells of: the smallest plan that shows it, and
// what a judge says of it.
type finding struct {
	rule, says string
	plan       func(*scene)
}

// A scene is a plan of one Job, written by hand, on a network in which nothing happens by chance.
type scene struct {
	*plan
	job *jobPlan
}

const sec = time.Second

func newScene(upstream bool) *scene {
	j := &jobPlan{namespace: namespace, name: "job-a", spec: simpleSpec(1)}
	j.spec.Completions = new(int32(1))
	asUpstream(&j.spec)
	s := &scene{job: j, plan: &plan{
		seed: 1, begins: time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC), calm: 30 * sec, settle: settleTime, jobs: []*jobPlan{j},
		executor: executorPlan{upstream: upstream, replace: true, replicas: 1, zone: "Etc/UTC"},
		network:  networkPlan{request: span{4 * time.Millisecond, 5 * time.Millisecond}, event: span{time.Millisecond, 2 * time.Millisecond}},
	}}
	s.at(sec, "user", "create")
	return s
}

func (s *scene) at(at time.Duration, who, verb string) *step {
	one := &step{at: at, who: who, verb: verb, on: s.job.on()}
	s.steps = append(s.steps, one)
	return one
}

// fails lets requests of a verb about a resource fail for a while.
func (s *scene) fails(kind faultKind, verb, resource string, from, to time.Duration) *fault {
	f := &fault{kind: kind, percent: 100, verb: verb, resource: resource, from: from, to: to, delay: span{time.Millisecond, 2 * time.Millisecond}}
	s.faults = append(s.faults, f)
	return f
}

// pod is the fate of a pod that runs for a while and then ends.
func pod(run time.Duration, end ending) fate {
	return fate{start: 10 * time.Millisecond, ready: 10 * time.Millisecond, run: run, end: end, exit: 1, linger: sec}
}

var findings = map[string]finding{
	"counted-twice": {"I2", "a pod is recorded again after it was counted", func(s *scene) {
		s.job.spec.Completions = new(int32(3))
		s.fails(putBack, "PATCH", "pods", 6*sec, 8*sec) // When the second pod is released.
		s.at(8500*time.Millisecond, "executor", "kill").d = 100 * time.Millisecond
	}},
	"finalizer-never-tried-again": {"status", "holds the tracking finalizer at rest", func(s *scene) {
		s.job.spec.CompletionMode = new(batchv1.IndexedCompletion)
		s.job.spec.Completions, s.job.spec.Parallelism = new(int32(2)), new(int32(2))
		s.job.spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededCount: new(int32(1))}}}
		waits := pod(sec, endsWell)
		waits.start = time.Hour // For a node, so that it is gone at once when it is deleted.
		s.job.fates = []fate{pod(2*sec, endsWell), waits}
		s.fails(putBack, "PATCH", "pods", 0, 10*sec)
	}},
	"time-to-live-extended": {"ttl", "left to live", func(s *scene) {
		s.job.spec.TTLSecondsAfterFinished = new(int32(5))
		longer := s.at(6*time.Millisecond, "user", "set time to live") // After the controller has read the Job.
		longer.expires, longer.n = true, 600
	}},
	"second-pod": {"I6", "more pods than the Job wants", func(s *scene) {
		s.fails(lostAnswer, "POST", "pods", 0, 1500*time.Millisecond)
		s.fails(watchLag, "", "pods", 500*time.Millisecond, 10*sec).delay = span{5 * sec, 6 * sec}
	}},
	"first-seen-when-deleted": {"liveness", "nothing holds the others back", func(s *scene) {
		s.job.fates = []fate{pod(100*time.Millisecond, removed), pod(2*sec, endsWell)}
		s.job.fates[0].linger = 5 * sec
		s.fails(watchBreak, "", "pods", sec, 1100*time.Millisecond)
	}},
	"index-failed-and-succeeded": {"I5", "failedIndexes and completedIndexes overlap", func(s *scene) {
		s.job.spec.CompletionMode, s.job.spec.BackoffLimitPerIndex = new(batchv1.IndexedCompletion), new(int32(0))
		s.job.spec.Completions, s.job.spec.Parallelism = new(int32(2)), new(int32(2))
		stopped := pod(2*sec, removed)
		stopped.linger, stopped.obeys = 5*sec, true
		s.job.fates = []fate{stopped, pod(20*sec, endsWell)}
		s.fails(unavailable, "PATCH", "pods", 2*sec, 12*sec)
	}},
	"ends-while-suspended": {"I5", "startTime is required for finished job", func(s *scene) {
		s.job.spec.BackoffLimit, s.job.fates = new(int32(0)), []fate{pod(6*sec, endsBadly)}
		s.at(3*sec, "user", "suspend")
		s.fails(unavailable, "PATCH", "pods", 2*sec, 12*sec)
	}},
	"deadline-of-centuries": {"verdict", "DeadlineExceeded", func(s *scene) {
		s.job.spec.ActiveDeadlineSeconds = new(int64(10_000_000_000)) // 317 years.
	}},
	"success-thrown-away": {"I1", "took the finalizer from a pod that had ended (Succeeded)", func(s *scene) {
		s.job.spec.Completions, s.job.spec.Parallelism = new(int32(3)), new(int32(2))
		s.job.fates = []fate{pod(5*sec, endsWell), pod(5*sec, endsWell)}
		s.fails(watchLag, "", "pods", 5*sec, 12*sec).delay = span{3 * sec, 3100 * time.Millisecond}
		s.at(6500*time.Millisecond, "user", "set parallelism").n = 1
	}},
}

// TestUpstreamFindings plays each finding twice: with Kubernetes' own controllers a judge finds it,
// and with the executor no judge finds anything.
func TestUpstreamFindings(t *testing.T) {
	prepare()
	for name, f := range findings {
		t.Run(name, func(t *testing.T) {
			theirs, ours := newScene(true), newScene(false)
			f.plan(theirs)
			f.plan(ours)
			e := play(t, theirs.plan, true)
			if !e.finds(f.rule, f.says) {
				t.Errorf("no judge says %s %q:\n%s\n%s\n%v", f.rule, f.says, theirs.plan, e.journal.story(e.breaches...), e.breaches)
			}
			if *tellFlag {
				t.Log(e.journal.story(e.breaches...))
			}
			if e := play(t, ours.plan, true); len(e.breaches) > 0 {
				t.Errorf("judges find something of the executor, too:\n%s", e.journal.story(e.breaches...))
			}
		})
	}
}

// finds reports whether a rule was broken in a way of which the judge says this.
func (e *aftermath) finds(rule, says string) bool {
	for _, b := range e.breaches {
		if b.rule == rule && strings.Contains(b.text, says) {
			return true
		}
	}
	return false
}

// aRow is a row of the table in docs/upstream-findings.md: finding, rule and seed.
var aRow = regexp.MustCompile(`(?m)^\| \[([a-z-]+)\]\(#([a-z-]+)\) \| (\w+) \| (\d+) \|`)

// plays is how often a world is played to find something: a few differ from play to play.
const plays = 4

// TestUpstreamTable holds docs/upstream-findings.md against the findings: each is there once, with its
// rule, and the world of its seed shows it.
func TestUpstreamTable(t *testing.T) {
	prepare()
	page, err := os.ReadFile("../../../docs/upstream-findings.md")
	must.Succeed(t, err)
	rows := aRow.FindAllStringSubmatch(string(page), -1)
	if len(rows) != len(findings) {
		t.Errorf("the table has %d findings, and the test has %d", len(rows), len(findings))
	}
	for _, row := range rows {
		name, anchor, rule := row[1], row[2], row[3]
		f := findings[name]
		if name != anchor || rule != f.rule || !strings.Contains(string(page), "\n## "+name+"\n") {
			t.Errorf("%s: its rule is %s, and a section of its name tells of it", row[0], f.rule)
		}
		seed, err := strconv.ParseUint(row[4], 10, 64)
		must.Succeed(t, err)
		if !slices.ContainsFunc(make([]int, plays), func(int) bool {
			return play(t, draw(seed, drawOptions{upstream: true}), false).finds(f.rule, f.says)
		}) {
			t.Errorf("%s: world %d does not show it any more; make worlds UPSTREAM=1 N=600 says which one does", name, seed)
		}
	}
}

func TestAlarmsAreCountedByKind(t *testing.T) {
	found := alarms{}
	found.add(7, []string{"2026-03-02T08:00:09Z I6 default/job-a (5d28d5d9-94f6-457a-8d55-cb6e357f3ea2): executor-2 created pod job-a-0-drzcv, and with it there are 1 more pods than the Job wants"})
	found.add(3, []string{
		"2026-03-02T08:00:01Z I6 default/job-b (ca83c203-b201-49e1-9fd8-dfedf32d4a0a): executor-1 created pod job-b-1-abcde, and with it there are 2 more pods than the Job wants",
		"2026-03-02T08:00:02Z event default/job-b (ca83c203-b201-49e1-9fd8-dfedf32d4a0a): executor-1 wrote that the Job is Failed, and no event tells it",
	})
	want := []string{"2 worlds, the first is 3: I6 created pod …, and with it there are … more pods", "job-b-1-abcde", "1 worlds, the first is 3: event wrote", "difference events-in-a-burst"}
	got := found.String()
	for _, part := range want {
		if at := strings.Index(got, part); at < 0 {
			t.Errorf("%q is missing, or not in its place:\n%s", part, found)
		} else {
			got = got[at:]
		}
	}
	for _, e := range explaining {
		differences.Find(e.row) // It panics if there is no such row.
	}
}
