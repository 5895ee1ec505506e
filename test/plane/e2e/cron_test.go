package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/test/kit/objects"
)

// In replace mode CronJobs run at the full minute: a plain one, and one that may not run yet. One whose
// options cannot be read waits.
func TestCronJobsRunOnTheMinute(t *testing.T) {
	t.Parallel()
	w := newCronWorld(t, client)
	waiting := cron("waiting", everyMinute, "true")
	waiting.Annotations[wire.Policy] = "{cronJob: {startJitterSeconds: soon}}"
	forbidding := cron("forbidding", everyMinute, "sleep 300")
	forbidding.Spec.ConcurrencyPolicy = batchv1.ForbidConcurrent
	forbidding.Annotations[runNow] = "a long one"
	untilMinute(15 * time.Second)
	w.create(t, waiting)
	w.create(t, forbidding)
	w.create(t, cron("plain", everyMinute, "sleep 10")) // The test sees it run.
	long := w.waitMade(t, "forbidding", 1)[0]
	eventually(t, "the page tells the next run of those that start", func() (bool, string) {
		asked := time.Now()
		page := cronPage(t)
		told := 0
		for line := range strings.Lines(page) {
			if fields := strings.Fields(line); fields[0] == w.namespace && nextMinute(fields, asked) {
				told++
			}
		}
		return told == 2, page
	})

	plain := w.waitMade(t, "plain", 1)[0]
	checkScheduled(t, w.waitCron(t, "plain", "one run is active", func(c *batchv1.CronJob) bool {
		return len(c.Status.Active) == 1 && c.Status.Active[0].UID == plain.UID
	}), plain)
	w.waitEvent(t, "waiting", "InvalidPolicy", "cronJob.startJitterSeconds", `"soon"`)
	w.waitEvent(t, "forbidding", "JobAlreadyActive")
	if jobs := w.madeFor("forbidding"); len(jobs) != 1 {
		t.Errorf("the runs of a CronJob that forbids two at once: %v", names(jobs))
	}

	finished := waitFinished(t, w.namespace, plain.Name)
	w.waitCron(t, "plain", "the run's success is noted", func(c *batchv1.CronJob) bool {
		return c.Status.LastSuccessfulTime != nil && c.Status.LastSuccessfulTime.Equal(finished.Status.CompletionTime)
	})
	for _, reason := range []string{"SuccessfulCreate", "SawCompletedJob"} {
		w.waitEvent(t, "plain", reason, plain.Name)
	}

	background := metav1.DeletePropagationBackground
	objects.Delete(t, client.BatchV1().Jobs(w.namespace), long.Name, metav1.DeleteOptions{PropagationPolicy: &background})
	held := w.waitMade(t, "forbidding", 2)
	if jobs := w.madeFor("waiting"); len(jobs) != 0 {
		t.Errorf("the runs of a CronJob whose options cannot be read: %v", names(jobs))
	}
	for _, name := range []string{"plain", "forbidding"} {
		if twice := startedTwice(w.madeFor(name)); len(twice) > 0 {
			t.Errorf("%s started runs more than once: %v", name, twice)
		}
	}
	i := slices.IndexFunc(held, func(job *batchv1.Job) bool { return job.UID != long.UID })
	checkScheduled(t, w.waitCron(t, "forbidding", "the run that was held back is active", func(c *batchv1.CronJob) bool {
		return len(c.Status.Active) == 1 && c.Status.Active[0].UID == held[i].UID
	}), held[i])
}

// nextMinute reports whether a row of the page says that the CronJob runs at the next
// full minute.
func nextMinute(fields []string, now time.Time) bool {
	if len(fields) < 12 {
		return false
	}
	next, err := time.Parse(time.RFC3339, fields[11])
	return err == nil && next.Second() == 0 && next.After(now) && !next.After(now.Add(time.Minute))
}

// cronPage is the executor's page about CronJobs.
func cronPage(t *testing.T) string {
	t.Helper()
	code, body := get(plane.ExecutorURL() + "/debug/cronjobs")
	if code != http.StatusOK {
		t.Fatalf("the page about CronJobs: %d %s", code, body)
	}
	return body
}

// A run that an annotation asks for starts at once, and only once.
func TestARunStartsWhenItIsAskedFor(t *testing.T) {
	t.Parallel()
	w := newCronWorld(t, client)
	asked := cron("asked", onceAYear, "true")
	asked.Spec.SuccessfulJobsHistoryLimit = new(int32(2))
	w.create(t, asked)

	w.ask(t, "asked", "first")
	first := w.waitMade(t, "asked", 1)[0]
	w.waitAnswered(t, "asked")
	waitFinished(t, w.namespace, first.Name)
	if first.Annotations[runNow] != "first" || first.Annotations["cronjob.kubernetes.io/instantiate"] != "manual" {
		t.Errorf("the Job asked for is annotated with %v", first.Annotations)
	}
	w.ask(t, "asked", "first")
	w.waitAnswered(t, "asked")
	if jobs := w.madeFor("asked"); len(jobs) != 1 {
		t.Errorf("asked twice with the same text: %v", names(jobs))
	}

	made := []string{first.Name}
	for i := range 4 {
		w.ask(t, "asked", fmt.Sprint("again ", i))
		jobs := w.waitMade(t, "asked", i+2)
		w.waitAnswered(t, "asked")
		fresh := slices.DeleteFunc(names(jobs), func(name string) bool { return slices.Contains(made, name) })
		if len(fresh) != 1 {
			t.Fatalf("one more run was asked for, and %v were started", fresh)
		}
		made = append(made, fresh[0])
		w.waitIdle(t, "asked")
		time.Sleep(time.Second) // Jobs start in different seconds, so it is clear which is older.
	}
	want := slices.Sorted(slices.Values(made[len(made)-2:]))
	eventually(t, "the history is down to the newest two", func() (bool, string) {
		have := w.there(t, "asked")
		return slices.Equal(have, want), fmt.Sprint(have, want)
	})
	if c := w.cron(t, "asked"); c.Status.LastScheduleTime != nil {
		t.Errorf("runs asked for count as scheduled ones: %v", c.Status.LastScheduleTime)
	}
}

// A run that an annotation asks for obeys the concurrency policy: with Forbid it waits,
// with Replace it replaces the run before.
func TestARunAskedForKeepsToTheConcurrencyPolicy(t *testing.T) {
	t.Parallel()
	w := newCronWorld(t, client)
	forbidding := cron("forbidding", onceAYear, "sleep 4")
	forbidding.Spec.ConcurrencyPolicy = batchv1.ForbidConcurrent
	replacing := cron("replacing", onceAYear, "sleep 300")
	replacing.Spec.ConcurrencyPolicy = batchv1.ReplaceConcurrent
	first := map[string]*batchv1.Job{}
	for _, c := range []*batchv1.CronJob{forbidding, replacing} {
		w.create(t, c)
		w.ask(t, c.Name, "one")
		first[c.Name] = w.waitMade(t, c.Name, 1)[0]
		w.waitAnswered(t, c.Name)
		w.ask(t, c.Name, "two")
	}

	before := first["forbidding"]
	w.waitMade(t, "forbidding", 2)
	w.waitAnswered(t, "forbidding")
	for _, job := range w.madeFor("forbidding") {
		ended := waitFinished(t, w.namespace, before.Name).Status.CompletionTime
		if job.UID != before.UID && job.CreationTimestamp.Before(ended) {
			t.Errorf("%s started at %v, and the run before it ended at %v", job.Name, job.CreationTimestamp, ended)
		}
	}

	replaced := w.waitMade(t, "replacing", 2)
	w.waitAnswered(t, "replacing")
	eventually(t, "the newer run is the only one", func() (bool, string) {
		have := w.there(t, "replacing")
		return len(have) == 1, fmt.Sprint(have, names(replaced))
	})
	w.waitCron(t, "replacing", "the newer run is active", func(c *batchv1.CronJob) bool {
		return len(c.Status.Active) == 1 && c.Status.Active[0].Name == w.there(t, "replacing")[0]
	})
	w.waitEvent(t, "replacing", "SuccessfulDelete")
}
