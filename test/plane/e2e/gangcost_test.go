package e2e

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/deploy/local/must"
)

var gangCost = flag.Bool("gang.cost", false, "measure what Workloads and PodGroups cost Jobs that declare nothing; prints, and fails only if they make none or too many")

// A costed executor has its own Jobs, and makes Workloads and PodGroups for them or not.
type costed struct {
	*executorProcess
	manager   string
	objects   int
	requests  float64
	latencies []time.Duration
}

// The executors take turns, so that what else the machine does falls on both.
func TestCostOfPodGroups(t *testing.T) {
	if !*gangCost {
		t.Skip("pass -gang.cost to measure")
	}
	const rounds, jobs = 4, 50
	g := startGangPlane(t)
	var all []*costed
	for _, groups := range []bool{true, false} {
		c := &costed{manager: fmt.Sprintf("example.com/groups-%t", groups)}
		c.executorProcess = startExecutorOn(t, g.plane, "--engine=embedded", "--managed-by="+c.manager, "--leader-elect=false", gangExecutorGates,
			fmt.Sprintf("--pod-groups-for-all-jobs=%t", groups))
		eventually(t, c.manager+" is ready", c.ready)
		all = append(all, c)
	}
	for range rounds {
		for _, c := range all {
			g.round(t, c, jobs)
		}
	}
	for _, c := range all {
		slices.Sort(c.latencies)
		n := len(c.latencies)
		t.Logf("%s: %d Jobs; a Job: %.2f objects, %.1f requests of the executor, %v from creation to Complete (median), %v (90 %%)",
			c.manager, n, float64(c.objects)/float64(n), c.requests/float64(n), c.latencies[n/2].Round(time.Millisecond), c.latencies[n*9/10].Round(time.Millisecond))
	}
	if all[0].objects != 2*rounds*jobs || all[1].objects != 0 {
		t.Errorf("%d objects with groups for all Jobs, and %d without", all[0].objects, all[1].objects)
	}
}

// round runs Jobs of one pod at the same time, each from its creation until it is seen to be complete.
func (g *gangPlane) round(t *testing.T, c *costed, jobs int) {
	t.Helper()
	namespace, before := makeNamespace(t, g.client), c.metric(t, "rest_client_requests_total")
	seen, err := g.client.BatchV1().Jobs(namespace).Watch(t.Context(), metav1.ListOptions{})
	must.Succeed(t, err)
	defer seen.Stop()
	created := map[string]time.Time{}
	for i := range jobs {
		name := fmt.Sprint("job-", i)
		created[name] = time.Now()
		g.create(t, namespace, name, batchv1.JobSpec{ManagedBy: new(c.manager), Template: shell("true", "Never")})
	}
	for event := range seen.ResultChan() {
		job := event.Object.(*batchv1.Job)
		if at, waits := created[job.Name]; waits && isComplete(job) {
			c.latencies = append(c.latencies, time.Since(at))
			delete(created, job.Name)
		}
		if len(created) == 0 {
			break
		}
	}
	workloads, groups := g.gangs(t, namespace)
	c.objects += len(workloads) + len(groups)
	c.requests += c.metric(t, "rest_client_requests_total") - before
}
