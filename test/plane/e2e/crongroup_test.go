package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/deploy/local/cluster"
)

// Six CronJobs that are due at the same time use a database that bears two of them at once (kubernetes#91652, community#2440): never
// more are active, and they start in the order of their names, although the executor is killed in the middle.
func TestAGroupOfCronJobsSharesItsActiveRuns(t *testing.T) {
	w, due := newCronWorld(t, client), lastHourly()
	order := []string{"load-a", "load-b", "load-c", "load-d", "load-e", "load-f"}
	for _, name := range order {
		w.createMissing(t, name, "{cronJob: {group: {name: database, maxActiveRuns: 2}}}", "sleep 8", due.Add(-time.Hour))
	}
	for i, name := range []string{"load-a", "load-b", "load-f", "load-e", "load-d", "load-c"} {
		w.resume(t, name)
		if i < 2 {
			w.waitMade(t, name, 1)
		}
	}
	out, err := kubectlJobpolicy(t, w.namespace, "explain", "cronjob/load-f")
	if want := "group database has 2 of 2 active runs; 3 wait before it"; err != nil || !strings.Contains(out, want) {
		t.Errorf("%v: explain says\n%s\nwant %q in it", err, out, want)
	}
	killAndStart(t, cluster.Executor)
	goOnBesideOthers(t)
	var jobs []*batchv1.Job
	for _, name := range order {
		w.waitMade(t, name, 1)
		jobs = append(jobs, waitFinished(t, w.namespace, w.madeFor(name)[0].Name))
	}
	for i, job := range jobs {
		if want := fmt.Sprintf("%s-%d", order[i], due.Unix()/60); job.Name != want {
			t.Errorf("the run is %s, want %s", job.Name, want)
		}
	}
	checkActiveAtOnce(t, jobs, 2)
	if !slices.IsSortedFunc(jobs, func(a, b *batchv1.Job) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) }) {
		t.Errorf("the runs did not start in the order of their names")
	}
}

// checkActiveAtOnce checks that no more than most Jobs were active at any time, as the API server stored it. It keeps seconds: a
// Job that was created in the second in which another one was completed came after it.
func checkActiveAtOnce(t *testing.T, jobs []*batchv1.Job, most int) {
	t.Helper()
	for _, job := range jobs {
		active := 0
		for _, other := range jobs {
			if cmp.Or(other.CreationTimestamp.Compare(job.CreationTimestamp.Time), -1) < 0 && other.Status.CompletionTime.After(job.CreationTimestamp.Time) {
				active++
			}
		}
		if active > most {
			t.Errorf("when %s was created, %d runs were active with it, want %d at most", job.Name, active, most)
		}
	}
}
