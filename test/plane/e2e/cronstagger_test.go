package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/test/kit/objects"
)

// nextStarts returns when the next runs start, by kubectl jobpolicy next.
func nextStarts(t *testing.T, namespace string, args ...string) (starts []time.Time) {
	t.Helper()
	out, err := kubectlJobpolicy(t, namespace, append([]string{"next", "-n", "1", "-o", "json"}, args...)...)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for decoder := json.NewDecoder(strings.NewReader(out)); decoder.More(); {
		var report struct {
			Next []struct {
				At     time.Time
				Starts *time.Time
			}
		}
		if err := decoder.Decode(&report); err != nil || len(report.Next) != 1 {
			t.Fatalf("%v: %s", err, out)
		}
		at := report.Next[0].At
		if report.Next[0].Starts != nil {
			at = *report.Next[0].Starts
		}
		starts = append(starts, at)
	}
	return starts
}

// kubectl jobpolicy next spreads a thousand CronJobs that say "0 * * * *" over the whole hour
// (kubernetes#91652, argo-workflows#16603).
func TestAThousandHourlyCronJobsAreSpread(t *testing.T) {
	t.Parallel()
	var manifest strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&manifest, `---
apiVersion: batch/v1
kind: CronJob
metadata:
  name: report-%d
  annotations: {jobpolicy.dev/policy: "{cronJob: {staggerSeconds: 3600}}"}
spec:
  schedule: "0 * * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}}}
`, i)
	}
	file := filepath.Join(t.TempDir(), "crons.yaml")
	must.Succeed(t, os.WriteFile(file, []byte(manifest.String()), 0o600))
	minutes := map[int]int{}
	for _, at := range nextStarts(t, "tenants", "-f", file) {
		minutes[at.Minute()]++
	}
	for minute := range 60 {
		if n := minutes[minute]; n < 1 || n > 45 { // 17 on average
			t.Errorf("starts in minute %d: %d", minute, n)
		}
	}
}

// Staggered CronJobs start their runs at their own offsets, as kubectl jobpolicy next says, and
// keep them when they are created anew.
func TestStaggeredCronJobsStartAtTheirOffsets(t *testing.T) {
	t.Parallel()
	w := newCronWorld(t, client)
	untilMinute(20 * time.Second)
	const crons = 4
	want := map[string]time.Time{}
	for i := range crons {
		name := fmt.Sprintf("report-%d", i)
		w.createStaggered(t, name)
		want[name] = nextStarts(t, w.namespace, "cronjob/"+name)[0]
	}
	for name, start := range want {
		checkStarted(t, w.waitMade(t, name, 1)[0], start)
	}
	const name = "report-0"
	background := metav1.DeletePropagationBackground
	objects.Delete(t, client.BatchV1().CronJobs(w.namespace), name, metav1.DeleteOptions{PropagationPolicy: &background})
	untilMinute(5 * time.Second)
	w.createStaggered(t, name)
	again := nextStarts(t, w.namespace, "cronjob/"+name)[0]
	if again.Second() != want[name].Second() {
		t.Errorf("created anew, %s starts at %s, and before at %s", name, again, want[name])
	}
	jobs := w.waitMade(t, name, 2)
	checkStarted(t, jobs[len(jobs)-1], again)
}

func (w *cronWorld) createStaggered(t *testing.T, name string) {
	t.Helper()
	c := cron(name, everyMinute, "true")
	c.Annotations[wire.Policy] = "{cronJob: {staggerSeconds: 40}}"
	w.create(t, c)
}

// checkStarted checks that a run started at a time, or within the seconds after it.
func checkStarted(t *testing.T, job *batchv1.Job, start time.Time) {
	t.Helper()
	if late := job.CreationTimestamp.Sub(start); late < 0 || late > 9*time.Second {
		t.Errorf("%s started %s after %s", job.Name, late, start)
	}
	if job.Annotations[batchv1.CronJobScheduledTimestampAnnotation] != start.UTC().Truncate(time.Minute).Format(time.RFC3339) {
		t.Errorf("%s is the run of %s, want that of the minute of %s", job.Name, job.Annotations[batchv1.CronJobScheduledTimestampAnnotation], start)
	}
}
