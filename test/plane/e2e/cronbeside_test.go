package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/test/kit/controlplane"
	"jobpolicy.dev/test/kit/objects"
)

// The executor and the built-in CronJob controller each have their own CronJobs. While
// the owner of a CronJob is unclear, because spec.suspend changes all the time around
// the full minute, the two controllers still start its run only once.
func TestCronJobsBesideTheBuiltinController(t *testing.T) {
	t.Parallel()
	_, beside := startBesidePlane(t, "--replace-builtin=false")
	w := newCronWorld(t, beside)
	const contested = 6
	next := untilMinute(15 * time.Second)
	w.create(t, handedTo(ours, cron("handed-over", everyMinute, "true")))
	w.create(t, cron("left-alone", everyMinute, "true"))
	for i := range contested {
		c := handedTo(ours, cron(fmt.Sprint("contested-", i), everyMinute, "true"))
		c.Spec.SuccessfulJobsHistoryLimit = new(int32(i % 2))
		w.create(t, c)
	}
	time.Sleep(time.Until(next.Add(-2 * time.Second)))
	for flips := 0; time.Now().Before(next.Add(6 * time.Second)); flips++ {
		for i := range contested {
			w.patch(t, fmt.Sprint("contested-", i), fmt.Sprintf(`{"spec":{"suspend":%v}}`, (flips+i)%2 == 0))
		}
	}
	for i := range contested {
		w.patch(t, fmt.Sprint("contested-", i), `{"spec":{"suspend":true}}`)
	}

	for name, by := range map[string]string{"handed-over": cluster.Executor, "left-alone": builtInAgent} {
		job := w.waitMade(t, name, 1)[0]
		if agent(job) != by {
			t.Errorf("the run of %s was started by %q, want %q", name, agent(job), by)
		}
	}
	handed := w.waitMade(t, "handed-over", 1)[0]
	checkScheduled(t, w.waitCron(t, "handed-over", "the run is noted", func(c *batchv1.CronJob) bool { return c.Status.LastScheduleTime != nil }), handed)
	w.waitCron(t, "handed-over", "the run's success is noted", func(c *batchv1.CronJob) bool {
		return c.Status.LastSuccessfulTime != nil && len(c.Status.Active) == 0
	})
	by := map[string]int{}
	for i := range contested {
		name := fmt.Sprint("contested-", i)
		for _, job := range w.waitMade(t, name, 1) {
			by[agent(job)]++
		}
		w.waitCron(t, name, "the run is noted", func(c *batchv1.CronJob) bool {
			return c.Status.LastScheduleTime != nil && !c.Status.LastScheduleTime.Time.Before(next)
		})
		w.waitIdle(t, name)
		if twice := startedTwice(w.madeFor(name)); len(twice) > 0 {
			t.Errorf("runs of %s started more than once: %v", name, twice)
		}
	}
	t.Logf("runs of contested CronJobs, by who started them: %v", by)
	w.checkAgreed(t)
	w.waitEvent(t, "contested-0", "NotSuspended", cronManager)
	for _, event := range w.events(t, "handed-over") {
		if strings.HasPrefix(event, "NotSuspended") {
			t.Errorf("an event on a CronJob that is suspended for the built-in controller: %s", event)
		}
	}
}

// checkAgreed checks that the controllers agree on the CronJobs: at rest, neither writes what the
// other has written otherwise. Both prune the history of a CronJob and write parts of its status.
func (w *cronWorld) checkAgreed(t *testing.T) {
	t.Helper()
	versions := func() map[string]string {
		list := objects.List(t, w.client.BatchV1().CronJobs(w.namespace), metav1.ListOptions{})
		at := map[string]string{}
		for _, c := range list.Items {
			at[c.Name] = c.ResourceVersion
		}
		return at
	}
	const atRest = 5 * time.Second
	eventually(t, "nobody writes a CronJob for "+atRest.String(), func() (bool, string) {
		before := versions()
		time.Sleep(atRest)
		diff := cmp.Diff(before, versions())
		return diff == "", diff
	})
}

// startBesidePlane starts a control plane in which the built-in controllers of
// Jobs and CronJobs run beside the executor.
func startBesidePlane(t *testing.T, executorArgs ...string) (*cluster.Cluster, *kubernetes.Clientset) {
	t.Helper()
	controllers := strings.NewReplacer(",-job-controller", "", ",-cronjob-controller", "").Replace(cluster.DefaultControllers)
	beside := controlplane.Start(t, cluster.Options{
		WithoutEngine: true, ControllerManagerControllers: controllers,
		ExtraArgs: map[string][]string{cluster.Executor: executorArgs},
	})
	logsExecutor(t, beside)
	return beside, kubernetes.NewForConfigOrDie(beside.RESTConfig())
}

// An executor that is killed as soon as a Job exists, before or after it has recorded
// it, starts nothing twice: the next one finds the Job.
func TestCronJobsSurviveAKill(t *testing.T) {
	t.Parallel()
	const manager = "example.com/killed"
	args := []string{"--engine=embedded", "--managed-by=" + manager, "--leader-elect=false"}
	w := newCronWorld(t, client)
	first := startExecutor(t, args...)
	eventually(t, "the executor is ready", first.ready)
	w.create(t, handedTo(manager, cron("asked", onceAYear, "sleep 300")))
	w.create(t, handedTo(manager, cron("scheduled", everyMinute, "sleep 300")))
	untilMinute(25 * time.Second)
	w.ask(t, "asked", "once")
	asked := w.waitMade(t, "asked", 1)[0]
	scheduled := w.waitMade(t, "scheduled", 1)[0]
	first.kill()

	second := startExecutor(t, args...)
	eventually(t, "the next executor is ready", second.ready)
	w.waitAnswered(t, "asked")
	for name, job := range map[string]*batchv1.Job{"asked": asked, "scheduled": scheduled} {
		w.waitCron(t, name, "the run is noted", func(c *batchv1.CronJob) bool {
			return c.Status.LastScheduleTime != nil || (name == "asked" && len(c.Status.Active) == 1 && c.Status.Active[0].UID == job.UID)
		})
	}
	checkPage(t, second)
	if jobs := w.madeFor("asked"); len(jobs) != 1 {
		t.Errorf("one run was asked for, and these were started: %v", names(jobs))
	}
	if twice := startedTwice(w.madeFor("scheduled")); len(twice) > 0 {
		t.Errorf("runs started more than once: %v", twice)
	}
}

// checkPage checks that an executor's page lists its two CronJobs, no others,
// and when the scheduled one runs next.
func checkPage(t *testing.T, p *executorProcess) {
	t.Helper()
	eventually(t, "the page lists two CronJobs, and says when the one that is scheduled every minute runs next", func() (ok bool, page string) {
		code, page := get(p.url + "/debug/cronjobs")
		if code != http.StatusOK || strings.Count(page, "\n") != 3 {
			return false, page
		}
		for line := range strings.Lines(page) {
			fields := strings.Fields(line) // the schedule makes five of them
			if len(fields) < 12 || fields[1] != "scheduled" {
				continue
			}
			last, lastErr := time.Parse(time.RFC3339, fields[10])
			next, nextErr := time.Parse(time.RFC3339, fields[11])
			return lastErr == nil && nextErr == nil && next.Equal(last.Add(time.Minute)), page
		}
		return false, page
	})
}
