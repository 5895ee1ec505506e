package demo

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/google/go-cmp/cmp"

	"jobpolicy.dev/deploy/local/must"
)

const cronTable = `NAMESPACE   NAME      SCHEDULE      TIMEZONE        SUSPEND   ACTIVE   LAST SCHEDULE          NEXT SCHEDULE          WHY
default     hello     */1 * * * *   UTC             false     0        -                      2026-01-01T12:01:00Z   nothing is due since 2026-01-01T12:00:20Z
default     nightly   30 2 * * *    Europe/Berlin   true      0        2026-01-01T01:30:00Z   -                      the CronJob is suspended
`

func TestRowsOfTheTableOfCronJobsAreRead(t *testing.T) {
	t.Parallel()
	cases := map[string]map[string]string{
		"hello": {
			"NAMESPACE": "default", "NAME": "hello", "SCHEDULE": "*/1 * * * *", "TIMEZONE": "UTC", "SUSPEND": "false", "ACTIVE": "0",
			"LAST SCHEDULE": "-", "NEXT SCHEDULE": "2026-01-01T12:01:00Z", "WHY": "nothing is due since 2026-01-01T12:00:20Z",
		},
		"nightly": {
			"NAMESPACE": "default", "NAME": "nightly", "SCHEDULE": "30 2 * * *", "TIMEZONE": "Europe/Berlin", "SUSPEND": "true", "ACTIVE": "0",
			"LAST SCHEDULE": "2026-01-01T01:30:00Z", "NEXT SCHEDULE": "-", "WHY": "the CronJob is suspended",
		},
		"default": nil,
	}
	for name, want := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(want, cronRow(cronTable, name)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCronJobAfterItsRunIsDescribed(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 20, 0, time.UTC))
	good := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at}, Status: batchv1.CronJobStatus{LastSuccessfulTime: &at}}
	bad := good.DeepCopy()
	bad.Annotations = map[string]string{runNow: runText}
	bad.Status = batchv1.CronJobStatus{LastScheduleTime: &metav1.Time{Time: at.Add(40 * time.Second)}}
	published := good.DeepCopy()
	published.Annotations = map[string]string{nextScheduleTime: "2026-01-01T13:00:00Z"}
	for cron, want := range map[*batchv1.CronJob][]string{
		good:      {"the request is cleared", "lastSuccessfulTime set", "next run at the next whole minute", "runs one after another: "},
		bad:       {`the request "demo" stands`, "no lastSuccessfulTime", `next run at "2026-01-01T12:01:00Z", not at 2026-01-01T12:02:00Z`, "runs one after another: "},
		published: {"the request is cleared", "lastSuccessfulTime set", "next run at the next whole minute", "next-schedule-time 2026-01-01T13:00:00Z", "runs one after another: "},
	} {
		must.Equal(t, "sentences", want, cronSeen{cron: cron, row: cronRow(cronTable, "hello")}.sentences())
	}
}

// Runs that were active at the same time are told from those that waited for one another.
func TestOrderOfRunsIsDescribed(t *testing.T) {
	t.Parallel()
	second := func(n int) metav1.Time { return metav1.NewTime(time.Date(2026, 1, 1, 12, 0, n, 0, time.UTC)) }
	run := func(name string, from, to int) batchv1.Job {
		end := second(to)
		return batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{
				Name: name + "-run-" + runHash, CreationTimestamp: second(from),
				Annotations: map[string]string{batchv1.CronJobScheduledTimestampAnnotation: name},
			},
			Status: batchv1.JobStatus{CompletionTime: &end},
		}
	}
	first, after, beside, unfinished := run("first", 0, 4), run("after", 4, 5), run("beside", 3, 5), run("unfinished", 0, 9)
	unfinished.Status.CompletionTime = nil
	cases := map[string]struct {
		runs []batchv1.Job
		want string
	}{
		"one after the other":      {[]batchv1.Job{first, after}, "runs one after another: first, after"},
		"both at once":             {[]batchv1.Job{first, beside}, "runs side by side: first, beside"},
		"the first goes on":        {[]batchv1.Job{unfinished, after}, "runs side by side: unfinished, after"},
		"a single one, unfinished": {[]batchv1.Job{unfinished}, "runs one after another: unfinished"},
	}
	for name, tc := range cases {
		if got := runsSentence(tc.runs); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	besides := map[string]struct {
		runs []batchv1.Job
		want string
	}{
		"after it":            {[]batchv1.Job{after}, "not beside first"},
		"before it had ended": {[]batchv1.Job{beside}, "beside first"},
		"no run":              {nil, "beside first"},
	}
	for name, tc := range besides {
		if got := besideSentence(tc.runs, &first); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if got := besideSentence([]batchv1.Job{first}, &after); got != "not beside after" {
		t.Errorf("the other one came later: %q", got)
	}
	if got := besideSentence([]batchv1.Job{unfinished}, &first); got != "beside first" {
		t.Errorf("neither had ended: %q", got)
	}
}

func TestCronJobIsAskedForOneRun(t *testing.T) {
	t.Parallel()
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "hello", Namespace: namespace}}
	ex := &example{name: "cronjob", run: "hello-run", cron: cron, job: runOf(cron, "hello-run"), start: askForRun("now")}
	client := fake.NewClientset()
	var said []string
	d := newDirector(newObserver("", []*example{ex}), client, func(command string) { said = append(said, command) })
	for range 2 {
		must.Succeed(t, d.direct(t.Context()))
	}
	if len(said) != 1 {
		t.Errorf("said: %q", said)
	}
	asked, err := client.BatchV1().CronJobs(namespace).Get(t.Context(), "hello", metav1.GetOptions{})
	must.Succeed(t, err)
	must.Equal(t, "annotations", map[string]string{runNow: runText}, asked.Annotations)
}

func TestJobWithATimeToLiveHasNotEndedBeforeItIsGone(t *testing.T) {
	t.Parallel()
	job := &batchv1.Job{Status: batchv1.JobStatus{Conditions: trueConditions("FailedIndexes", batchv1.JobFailed)}}
	ex := &example{name: "ttl", job: job}
	seconds := int32(5)
	job.Spec.TTLSecondsAfterFinished = &seconds
	if r := rowOf(ex, history{job: job}, ""); r.ended {
		t.Error("it counts as ended while it is there")
	}
	if r := rowOf(ex, history{job: job, gone: true}, ""); !r.ended {
		t.Error("it does not count as ended though it is gone")
	}
}
