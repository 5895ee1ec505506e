package demo

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/google/go-cmp/cmp"
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
	for cron, want := range map[*batchv1.CronJob][]string{
		good: cronWants,
		bad:  {`the request "demo" stands`, "no lastSuccessfulTime", `next run at "2026-01-01T12:01:00Z", not at 2026-01-01T12:02:00Z`},
	} {
		if diff := cmp.Diff(want, cronSeen{cron, cronRow(cronTable, "hello")}.sentences()); diff != "" {
			t.Errorf("sentences (-want +got):\n%s", diff)
		}
	}
}

func TestCronJobIsAskedForOneRun(t *testing.T) {
	t.Parallel()
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "hello", Namespace: namespace}}
	ex := &example{name: "cronjob", run: "hello-run", cron: cron, job: runOf(cron, "hello-run")}
	client := fake.NewClientset()
	var said []string
	d := newDirector(newObserver("", []*example{ex}), client, func(command string) { said = append(said, command) })
	for range 2 {
		if err := d.direct(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(said) != 1 {
		t.Errorf("said: %q", said)
	}
	asked, err := client.BatchV1().CronJobs(namespace).Get(t.Context(), "hello", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{runNow: runText}, asked.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
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
