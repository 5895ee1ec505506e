package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/executor/wire"
)

// CronJobs that were suspended for five hours are resumed (kubernetes#83642, #110919). As their policies say, no
// missed run starts, or the latest, or the latest three one after another, although the executor is
// killed after the first of them.
func TestMissedRunsStartAsThePolicySays(t *testing.T) {
	w := newCronWorld(t, client)
	hour := lastHourly()
	w.createMissing(t, "none", "{cronJob: {maxMissedRuns: 0}}", "sleep 6", hour.Add(-5*time.Hour))
	w.createMissing(t, "latest", "{}", "sleep 6", hour.Add(-5*time.Hour))
	w.createMissing(t, "three", "{cronJob: {maxMissedRuns: 3}}", "sleep 6", hour.Add(-5*time.Hour))
	for _, name := range []string{"none", "latest", "three"} {
		w.resume(t, name)
	}
	w.waitMade(t, "three", 1)
	killAndStart(t, cluster.Executor)
	goOnBesideOthers(t)
	w.waitMade(t, "three", 3)
	w.waitMade(t, "latest", 1)
	w.waitIdle(t, "three")
	for name, hours := range map[string][]int{"none": {}, "latest": {0}, "three": {-2, -1, 0}} {
		var want []string
		for _, h := range hours {
			want = append(want, fmt.Sprintf("%s-%d", name, hour.Add(time.Duration(h)*time.Hour).Unix()/60))
		}
		if got := names(w.madeFor(name)); !slices.Equal(got, want) {
			t.Errorf("runs of %s: %v, want %v", name, got, want)
		}
	}
	w.checkOneAfterAnother(t, "three")
	if at := w.cron(t, "three").Status.LastScheduleTime; !at.Time.Equal(hour) {
		t.Errorf("last run at %s, want %s", at, hour)
	}
}

// lastHourly is when hourly CronJobs of createMissing were due last. They are due again in 40 minutes.
func lastHourly() time.Time { return time.Now().UTC().Add(-20 * time.Minute).Truncate(time.Minute) }

func (w *cronWorld) resume(t *testing.T, name string) {
	t.Helper()
	w.patch(t, name, `{"spec": {"suspend": false}}`)
}

// createMissing creates a suspended hourly CronJob with Forbid that ran last at a time. When it is resumed, what it has missed
// is due at once.
func (w *cronWorld) createMissing(t *testing.T, name, policy, script string, last time.Time) {
	t.Helper()
	c := cron(name, fmt.Sprintf("%d * * * *", last.Minute()), script)
	c.Annotations[wire.Policy], c.Spec.Suspend, c.Spec.ConcurrencyPolicy = policy, new(true), batchv1.ForbidConcurrent
	w.create(t, c)
	patch := fmt.Sprintf(`{"status": {"lastScheduleTime": %q}}`, last.Format(time.RFC3339))
	_, err := w.client.BatchV1().CronJobs(w.namespace).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	must.Succeed(t, err)
}

// checkOneAfterAnother checks that no run of a CronJob began before the one before it had ended.
func (w *cronWorld) checkOneAfterAnother(t *testing.T, name string) {
	t.Helper()
	var ended time.Time
	for _, made := range w.madeFor(name) {
		job := getJobOn(t, w.client, w.namespace, made.Name)
		if job.CreationTimestamp.Time.Before(ended) {
			t.Errorf("%s began at %s, and the run before it ended at %s", job.Name, job.CreationTimestamp, ended)
		}
		ended = job.Status.CompletionTime.Time
	}
}

// A CronJob publishes its next run if its policy says so (kubernetes#78564): none while it is suspended or is not asked
// to, and the next one after a run.
func TestTheNextRunIsPublished(t *testing.T) {
	t.Parallel()
	w := newCronWorld(t, client)
	minute := untilMinute(15 * time.Second)
	published := func(what string, want time.Time) {
		t.Helper()
		w.waitCron(t, "report", what, func(c *batchv1.CronJob) bool {
			text, is := c.Annotations[wire.NextScheduleTime]
			return is == !want.IsZero() && (!is || text == want.UTC().Format(time.RFC3339))
		})
	}
	c := cron("report", everyMinute, "true")
	c.Annotations[wire.Policy] = "{cronJob: {publishNextScheduleTime: true}}"
	w.create(t, c)
	published("the first run", minute)
	w.waitMade(t, "report", 1)
	published("the second run", minute.Add(time.Minute))
	w.patch(t, "report", `{"spec": {"suspend": true}}`)
	published("none while it is suspended", time.Time{})
	w.patch(t, "report", `{"spec": {"suspend": false}}`)
	published("the second run, resumed", minute.Add(time.Minute))
	w.patch(t, "report", `{"metadata": {"annotations": {"jobpolicy.dev/policy": "{}"}}}`)
	published("none any more", time.Time{})
}
