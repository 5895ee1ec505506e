package views_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/views"
)

// A cluster is what the executor would know.
type cluster struct {
	mu    sync.Mutex
	jobs  map[types.UID]executor.Observation
	pods  map[types.UID]tracker.Census
	crons []executor.CronJobObservation
	// options are those of Jobs.
	options map[types.UID]executor.Options
	asked   int
	// listed counts the pods that were listed.
	listed int
}

func (c *cluster) EachJob(f func(executor.Observation)) {
	c.mu.Lock()
	c.asked++
	all := slices.Collect(maps.Values(c.jobs))
	c.mu.Unlock()
	for _, o := range all {
		f(o)
	}
}

func (c *cluster) Job(uid types.UID, mostPods int) (executor.Observation, tracker.Census, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, ok := c.jobs[uid]
	pods := c.pods[uid]
	if pods.Known > mostPods {
		pods.Pods = nil
	} else {
		c.listed += pods.Known
	}
	return o, pods, ok
}

func (c *cluster) Options(uid types.UID) executor.Options {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.options[uid]
}

func (c *cluster) EachCronJob(f func(executor.CronJobObservation)) {
	for _, o := range c.crons {
		f(o)
	}
}

func (c *cluster) put(job *batchv1.Job, e *jobpolicyv1.Explanation) {
	text, err := proto.Marshal(e)
	if err != nil {
		panic(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jobs[job.UID] = executor.Observation{Job: job, Decision: &tracker.Decision{Time: time.Now(), Explanation: text}}
}

func (c *cluster) change(uid types.UID, change func(*executor.Observation)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.jobs[uid]
	change(&o)
	c.jobs[uid] = o
}

func (c *cluster) drop(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.jobs, uid)
}

func (c *cluster) snapshots() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

func newCluster() *cluster {
	return &cluster{jobs: map[types.UID]executor.Observation{}, pods: map[types.UID]tracker.Census{}}
}

// serve serves the page with a snapshot every few milliseconds.
func serve(t *testing.T, c *cluster) string {
	t.Helper()
	server := httptest.NewServer(views.Page(views.PageConfig{Jobs: c, CronJobs: c, Gatherer: prometheus.NewRegistry(), Interval: 5 * time.Millisecond}))
	t.Cleanup(server.Close)
	return server.URL + views.PagePath
}

func job(name string) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.Now()},
		Spec:       batchv1.JobSpec{Parallelism: new(int32(2)), Completions: new(int32(2)), BackoffLimit: new(int32(6))},
	}
}

// podOf is a pod of a Job in this phase, and so old.
func podOf(name string, phase corev1.PodPhase, age time.Duration, change ...func(*corev1.Pod)) *podcache.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", CreationTimestamp: metav1.NewTime(time.Now().Add(-age))},
		Status:     corev1.PodStatus{Phase: phase},
	}
	for _, f := range change {
		f(p)
	}
	return podcache.From(p)
}

// active is what is known of so many active pods and of those that are listed.
func active(n int32, pods ...*podcache.Pod) tracker.Census {
	return tracker.Census{Summary: &jobpolicyv1.PodSummary{Active: n}, Known: len(pods), Pods: pods}
}

// An event is what a page gets: one of the whole, or of one Job.
type event struct {
	All  bool
	Jobs []struct {
		UID, Name, State, Reason string
		Waits                    []string
	}
	JobsGone []string
	Crons    []struct {
		Name, TimeZone string
		Suspended      bool
		Options        string
		Days           []struct {
			Runs  int64
			First []struct{ At string }
		}
	}
	Days    []string
	Gone    bool
	Options string
	Report  struct {
		State, Headline string
		Pods            []struct{ Why string }
	}
	Life struct {
		Bars []struct{ Name, Text string }
	}
	Pods  int
	Cells []struct{ First, Last, Succeeded, Failed, Active int }
}

// watch reads a stream until an event is as wanted.
func watch(t *testing.T, url string, steps ...func(event) bool) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s: %s, %s", url, answer.Status, answer.Header.Get("Content-Type"))
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e event
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if steps[0](e) {
			if steps = steps[1:]; len(steps) == 0 {
				return
			}
		}
	}
	t.Fatalf("the stream ended before step %d from the end: %v", len(steps), lines.Err())
}

func TestAReaderGetsEverythingFirstAndThenWhatChanges(t *testing.T) {
	c := newCluster()
	running := &jobpolicyv1.Explanation{Summary: "active: 2 of 2 wanted", Facts: &jobpolicyv1.JobFacts{WantedActive: new(int32(2))}}
	for _, name := range []string{"a", "b"} {
		j := job(name)
		j.Status.Active = 2
		c.put(j, running)
	}
	watch(t, serve(t, c)+"events",
		func(e event) bool {
			if !e.All || len(e.Jobs) != 2 || e.Jobs[0].State != "Running" || e.Jobs[0].Reason != "active: 2 of 2 wanted" {
				t.Fatalf("the first event is %+v, want both Jobs, running", e)
			}
			done := job("a")
			done.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
			c.put(done, &jobpolicyv1.Explanation{Summary: "done"})
			return true
		},
		func(e event) bool {
			if len(e.Jobs) == 0 {
				return false
			}
			if e.All || len(e.Jobs) != 1 || e.Jobs[0].Name != "a" || e.Jobs[0].State != "Complete" {
				t.Fatalf("after a change: %+v, want only Job a, complete", e)
			}
			c.drop("uid-b")
			return true
		},
		func(e event) bool {
			return slices.Equal(e.JobsGone, []string{"uid-b"})
		})
}

func TestWithoutReadersNothingIsDone(t *testing.T) {
	c := newCluster()
	url := serve(t, c)
	if _, err := http.Get(url); err != nil {
		t.Fatal(err)
	}
	if n := c.snapshots(); n != 0 {
		t.Errorf("snapshots before anybody reads the stream: %d", n)
	}
	for range 2 { // the second reader finds the snapshots stopped
		watch(t, url+"events", func(e event) bool { return e.All })
	}
	deadline := time.Now().Add(time.Minute)
	for last := -1; last != c.snapshots(); {
		if time.Now().After(deadline) {
			t.Fatal("snapshots go on after the last reader is gone")
		}
		last = c.snapshots()
		time.Sleep(100 * time.Millisecond)
	}
}

func TestALifeOfFewPodsHasABarForEach(t *testing.T) {
	c := newCluster()
	c.put(job("a"), &jobpolicyv1.Explanation{Facts: &jobpolicyv1.JobFacts{WantedActive: new(int32(2)), Failed: 1, RetriesLeft: 5}})
	failed := podOf("a-1", corev1.PodFailed, time.Minute, func(p *corev1.Pod) {
		ended := &corev1.ContainerStateTerminated{ExitCode: 42, FinishedAt: metav1.NewTime(time.Now().Add(-50 * time.Second))}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: ended}}}
		p.Status.Reason = "DeadlineExceeded"
	})
	c.pods["uid-a"] = active(1, failed, podOf("a-2", corev1.PodRunning, 40*time.Second))
	watch(t, serve(t, c)+"job?uid=uid-a", func(e event) bool {
		if e.Pods != 2 || len(e.Life.Bars) != 2 || e.Life.Bars[0].Text != "failed, DeadlineExceeded, exit code 42" || e.Life.Bars[1].Name != "a-2" {
			t.Errorf("life %+v, want a bar of the failed pod and one of the active pod", e.Life)
		}
		if e.Report.State != "Running" || !strings.Contains(e.Report.Headline, "1 pod is to be created") {
			t.Errorf("report %+v", e.Report)
		}
		if why := e.Report.Pods[0].Why; !strings.Contains(why, "DeadlineExceeded; container main ended with exit code 42") {
			t.Errorf("the pod failed because: %s", why)
		}
		return true
	}, func(e event) bool {
		c.drop("uid-a")
		return e.Gone
	})
}

// A Job whose pods do not start is Stuck, as kubectl jobpolicy explain says.
func TestALifeSaysThatPodsDoNotStart(t *testing.T) {
	cases := map[string]struct {
		conditions []corev1.PodCondition
		age        time.Duration
		want       string
	}{
		"no node": {
			conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}},
			age:        time.Second,
			want:       "1 of 1 active pods cannot start: no node takes it.",
		},
		"for long":        {age: time.Hour, want: "1 of 1 active pods cannot start: it has been Pending for 1h"},
		"for two seconds": {age: 2 * time.Second, want: ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			c.put(job("a"), &jobpolicyv1.Explanation{Facts: &jobpolicyv1.JobFacts{WantedActive: new(int32(1)), RetriesLeft: 6}})
			c.pods["uid-a"] = active(1, podOf("a-1", corev1.PodPending, tc.age, func(p *corev1.Pod) { p.Status.Conditions = tc.conditions }))
			watch(t, serve(t, c)+"job?uid=uid-a", func(e event) bool {
				if stuck := e.Report.State == "Stuck"; stuck != (tc.want != "") || !strings.HasPrefix(e.Report.Headline, tc.want) {
					t.Errorf("report %+v, want %q", e.Report, tc.want)
				}
				return true
			})
		})
	}
}

// The list says that a Job is stuck or blocked from the sums that the executor keeps.
func TestTheListSaysWhatHindersAJob(t *testing.T) {
	cases := map[string]struct{ pods, refused, wantState, wantReason string }{
		"image":   {pods: "ImagePullBackOff", wantState: "Stuck", wantReason: "the image cannot be pulled (ImagePullBackOff)"},
		"no node": {pods: "Unschedulable", wantState: "Stuck", wantReason: "no node takes it"},
		"gates":   {pods: "SchedulingGated", wantState: "Stuck", wantReason: "it has scheduling gates"},
		"signed":  {pods: "SignatureValidationFailed", wantState: "Stuck", wantReason: "the image cannot be pulled (SignatureValidationFailed)"},
		"other":   {pods: "MadeUp", wantState: "Stuck", wantReason: "a container does not start (MadeUp)"},
		"secret": {
			pods: "CreateContainerConfigError", wantState: "Stuck",
			wantReason: "a container lacks something that it refers to, such as a config map or secret (CreateContainerConfigError)",
		},
		"quota": {
			refused: `pods "a-1" is forbidden: exceeded quota: small`, wantState: "Blocked",
			wantReason: `the quota is used up: pods "a-1" is forbidden: exceeded quota: small`,
		},
		"nothing": {wantState: "Starting"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			c.put(job("a"), &jobpolicyv1.Explanation{Facts: &jobpolicyv1.JobFacts{WantedActive: new(int32(2))}})
			url := serve(t, c)
			c.change("uid-a", func(o *executor.Observation) {
				if tc.pods != "" {
					o.Hindered = tracker.Hindered{Pods: 2, Reason: tc.pods}
				}
				if tc.refused != "" {
					o.Refusals = []writes.Refusal{{Kind: writes.CreatePod, Since: time.Now(), Last: time.Now(), Why: tc.refused}}
				}
			})
			watch(t, url+"events", func(e event) bool {
				if len(e.Jobs) != 1 {
					return false
				}
				row := e.Jobs[0]
				if row.State != tc.wantState || !strings.HasPrefix(row.Reason, tc.wantReason) || strings.Join(row.Waits, ",") != tc.pods {
					t.Errorf("row %+v, want %s: %s", row, tc.wantState, tc.wantReason)
				}
				return true
			})
		})
	}
}

// Nothing tells the executor that a volume cannot be mounted. A pod that has been Pending for
// long is told nevertheless, without an event about the Job.
func TestTheListSaysThatPodsAreLate(t *testing.T) {
	cases := map[string]struct {
		age   time.Duration
		phase corev1.PodPhase
		want  string
	}{
		"Pending for an hour":        {age: time.Hour, phase: corev1.PodPending, want: "Stuck: it has been Pending for 1h"},
		"Pending for half a minute":  {age: 30 * time.Second, phase: corev1.PodPending, want: "Running: "},
		"runs, and is not ready yet": {age: time.Hour, phase: corev1.PodRunning, want: "Running: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			j := job("a")
			j.Status.Active, j.Status.Ready = 1, new(int32(0))
			j.Status.StartTime = &metav1.Time{Time: time.Now().Add(-time.Hour)}
			c.pods[j.UID] = active(1, podOf("a-1", tc.phase, tc.age))
			c.put(j, &jobpolicyv1.Explanation{Facts: &jobpolicyv1.JobFacts{WantedActive: new(int32(1))}})
			watch(t, serve(t, c)+"events", func(e event) bool {
				if len(e.Jobs) != 1 {
					return false
				}
				row := e.Jobs[0]
				if got := row.State + ": " + row.Reason; !strings.HasPrefix(got, tc.want) || slices.Contains(row.Waits, "Pending") != strings.HasPrefix(tc.want, "Stuck") {
					t.Errorf("row %+v, want %s", row, tc.want)
				}
				return true
			})
		})
	}
}

// A Job with many pods says the same of pods that do not start as one with few, in the list
// and in its life, without a look at each pod in every snapshot.
func TestManyPodsThatDoNotStart(t *testing.T) {
	const n = 2000
	cases := map[string]struct {
		hindered tracker.Hindered
		phase    corev1.PodPhase
		want     string
		wantWait string
	}{
		"no image": {
			hindered: tracker.Hindered{Pods: n, Reason: "ImagePullBackOff"}, phase: corev1.PodPending,
			want: "the image cannot be pulled (ImagePullBackOff)", wantWait: "ImagePullBackOff",
		},
		"Pending for long": {phase: corev1.PodPending, want: "it has been Pending for 1h", wantWait: "Pending"},
		"all run":          {phase: corev1.PodRunning, want: "", wantWait: ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			j := job("big")
			j.Spec.Parallelism, j.Spec.Completions = new(int32(n)), new(int32(n))
			j.Status.Active, j.Status.Ready = n, new(int32(0))
			j.Status.StartTime = &metav1.Time{Time: time.Now().Add(-time.Hour)}
			var pods []*podcache.Pod
			for i := range n {
				pods = append(pods, podOf(fmt.Sprintf("big-%d", i), tc.phase, time.Hour))
			}
			c.pods[j.UID] = active(n, pods...)
			c.put(j, &jobpolicyv1.Explanation{Facts: &jobpolicyv1.JobFacts{WantedActive: new(int32(n))}})
			c.change(j.UID, func(o *executor.Observation) { o.Hindered = tc.hindered })
			url, state := serve(t, c), "Running"
			if tc.want != "" {
				state = "Stuck"
			}
			watch(t, url+"job?uid=uid-big", func(e event) bool {
				if r := e.Report; r.State != state || !strings.Contains(r.Headline, tc.want) || state == "Stuck" && !strings.HasPrefix(r.Headline, "2000 of 2000 active pods cannot start: ") {
					t.Errorf("life %+v, want %s: %s", r, state, tc.want)
				}
				return true
			})
			watch(t, url+"events", func(e event) bool {
				row := e.Jobs[0]
				if row.State != state || !strings.HasPrefix(row.Reason, tc.want) || strings.Join(row.Waits, ",") != tc.wantWait {
					t.Errorf("row %+v, want %s: %s", row, state, tc.want)
				}
				return true
			})
			wait := c.snapshots() + 10
			watch(t, url+"events", func(event) bool {
				for c.snapshots() < wait {
					time.Sleep(time.Millisecond)
				}
				return true
			})
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.listed > n {
				t.Errorf("%d pods were listed one by one, want %d at most", c.listed, n)
			}
		})
	}
}

func TestALifeOfManyPodsHasRangesOfIndexes(t *testing.T) {
	c := newCluster()
	j := job("big")
	j.Spec.Completions, j.Spec.CompletionMode = new(int32(100_001)), new(batchv1.IndexedCompletion)
	j.Status.CompletedIndexes, j.Status.FailedIndexes = "0-999,100000", new("1000,1002")
	c.put(j, &jobpolicyv1.Explanation{})
	c.pods[j.UID] = tracker.Census{Known: 50_000, Summary: &jobpolicyv1.PodSummary{ActiveIndexes: &jobpolicyv1.IndexSet{Ranges: []*jobpolicyv1.IndexRange{{First: 50_000, Last: 99_999}}}}}
	watch(t, serve(t, c)+"job?uid=uid-big", func(e event) bool {
		n := len(e.Cells)
		if n != 200 || e.Life.Bars != nil {
			t.Fatalf("%d cells and %d bars, want 200 and none", n, len(e.Life.Bars))
		}
		var sum struct{ succeeded, failed, active, indexes int }
		for i, cell := range e.Cells {
			sum.succeeded, sum.failed, sum.active = sum.succeeded+cell.Succeeded, sum.failed+cell.Failed, sum.active+cell.Active
			sum.indexes += cell.Last - cell.First + 1
			if i > 0 && cell.First != e.Cells[i-1].Last+1 {
				t.Errorf("cell %d begins at %d, after %d", i, cell.First, e.Cells[i-1].Last)
			}
		}
		if sum.succeeded != 1001 || sum.failed != 2 || sum.active != 50_000 || sum.indexes != 100_001 {
			t.Errorf("all cells: %+v", sum)
		}
		if last := e.Cells[n-1]; last.Last != 100_000 || last.Succeeded != 1 {
			t.Errorf("last cell %+v, want index 100000 to have succeeded", last)
		}
		return true
	})
}

func TestCalendar(t *testing.T) {
	c := newCluster()
	cron := func(name, schedule string) *batchv1.CronJob {
		return &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}, Spec: batchv1.CronJobSpec{Schedule: schedule}}
	}
	c.crons = []executor.CronJobObservation{
		{CronJob: cron("minutely", "* * * * *"), Zone: "Europe/Berlin"},
		{CronJob: cron("held", "@daily"), Suspended: true},
		{CronJob: cron("wrong", "never"), Explanation: &jobpolicyv1.CronJobExplanation{Summary: "unreadable"}},
	}
	watch(t, serve(t, c)+"events", func(e event) bool {
		if len(e.Crons) != 3 || len(e.Days) != 7 {
			t.Fatalf("%+v, want 3 CronJobs and 7 days", e)
		}
		for _, row := range e.Crons {
			switch row.Name {
			case "minutely":
				// The days between two changes of the clock have 1440 minutes.
				if len(row.Days) != 7 || row.TimeZone != "Europe/Berlin" || row.Days[3].Runs < 1380 || len(row.Days[3].First) != 3 || row.Days[3].First[1].At != "00:01" {
					t.Errorf("%+v, want a run every minute, from 00:00 on", row)
				}
			default:
				if len(row.Days) != 0 || row.Suspended != (row.Name == "held") {
					t.Errorf("%+v, want no runs", row)
				}
			}
		}
		return true
	})
}

// The page says which options a Job or CronJob has, and where they are.
const nightly = "JobPolicy nightly, the default of namespace ns"

func TestThePageListsOptions(t *testing.T) {
	c := newCluster()
	few := &jobpolicyv1.JobOptions{
		WhenJobFails:     jobpolicyv1.WhenJobFails_WHEN_JOB_FAILS_END_PODS,
		KeepFinishedPods: &jobpolicyv1.KeepFinishedPods{Succeeded: new(int32(0)), Failed: new(int32(3))},
	}
	cases := map[string]struct {
		has  executor.Options
		want string
	}{
		"none":                  {},
		"some":                  {executor.Options{From: nightly, Job: few}, nightly + ": job.keepFinishedPods succeeded 0, failed 3; job.whenJobFails EndPods"},
		"a policy for CronJobs": {executor.Options{From: nightly}, nightly + ": none"},
		"unreadable":            {executor.Options{From: nightly, Problems: []string{"gone"}}, nightly + ": cannot be read"},
		"unreadable by now":     {executor.Options{From: nightly, Job: &jobpolicyv1.JobOptions{EndCondition: true}, Problems: []string{"gone"}}, nightly + ": cannot be read; the last valid ones: job.endCondition true"},
	}
	url := serve(t, c)
	for name, tc := range cases {
		j := job("held")
		c.put(j, &jobpolicyv1.Explanation{})
		c.mu.Lock()
		c.options = map[types.UID]executor.Options{j.UID: tc.has}
		c.mu.Unlock()
		watch(t, url+"job?uid=uid-held", func(e event) bool {
			if e.Options != tc.want {
				t.Errorf("%s: %q, want %q", name, e.Options, tc.want)
			}
			return true
		})
	}
}

func TestThePageListsOptionsOfCronJobs(t *testing.T) {
	c := newCluster()
	cron := func(name string) *batchv1.CronJob {
		return &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}, Spec: batchv1.CronJobSpec{Schedule: "@daily"}}
	}
	c.crons = []executor.CronJobObservation{
		{CronJob: cron("plain")},
		{CronJob: cron("new"), OptionsFrom: nightly},
		{CronJob: cron("unread"), OptionsFrom: nightly, OptionsUnread: true},
		{CronJob: cron("unread by now"), OptionsFrom: nightly, OptionsUnread: true, Options: &jobpolicyv1.CronJobOptions{StaggerSeconds: new(int32(5))}},
		{CronJob: cron("shared"), OptionsFrom: nightly, Options: &jobpolicyv1.CronJobOptions{
			SkippedHour: jobpolicyv1.SkippedHour_SKIPPED_HOUR_RUN_AFTER, Group: &jobpolicyv1.RunGroup{Name: "db", MaxActiveRuns: 2},
		}},
	}
	want := map[string]string{
		"plain": "", "new": "", "unread": nightly + ": cannot be read",
		"unread by now": nightly + ": cannot be read; the last valid ones: cronJob.staggerSeconds 5",
		"shared":        nightly + ": cronJob.skippedHour RunAfter; cronJob.group name db, maxActiveRuns 2",
	}
	watch(t, serve(t, c)+"events", func(e event) bool {
		for _, row := range e.Crons {
			if row.Options != want[row.Name] {
				t.Errorf("CronJob %s: %q, want %q", row.Name, row.Options, want[row.Name])
			}
		}
		return len(e.Crons) == len(want)
	})
}

func TestThePageIsGuarded(t *testing.T) {
	url := serve(t, newCluster())
	for path, want := range map[string]int{
		"": http.StatusOK, "page.js": http.StatusOK, "page.css": http.StatusOK, "missing": http.StatusNotFound, "job": http.StatusBadRequest,
	} {
		answer, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		policy := answer.Header.Get("Content-Security-Policy")
		if answer.StatusCode != want || !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || answer.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%q: %s, policy %q", path, answer.Status, policy)
		}
	}
	answer, err := http.Post(url+"events", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %s, want 405", answer.Status)
	}
}
