package clients

import (
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
)

// The quota is 5: Job a has three pods, Job d two, and Job b waits.
const (
	kueueBegins = `quota 5
indexed() { job $1 '' "completions: $2, parallelism: $2, completionMode: Indexed," 'sleep $((8 + JOB_COMPLETION_INDEX * 300))'; }
indexed a 3; indexed d 2
until_value job/a .status.ready 3; until_value job/d .status.ready 2
job b '' '' 'sleep 1'`

	// An index of a and one of d are done. Nothing is reclaimed, and nothing stops.
	kueueHoldsQuota = `until_value job/a .status.completedIndexes 0; until_value job/d .status.completedIndexes 0
for i in $(seq 30); do
	[ "$(kubectl get jobs -o jsonpath='{.items[*].spec.suspend} {.items[*].status.active}')" = "false true false 2 1" ]
	[ -z "$(kubectl get workloads -o jsonpath='{.items[*].status.reclaimablePods}')" ]
	sleep 1
done`

	// The rest of Kueue goes on: d is stopped, and its quota goes to b.
	kueueGoesOn = `workload=$(kubectl get workloads -o name | grep job-d-)
kubectl patch $workload --type=merge -p '{"spec":{"active":false}}'
until_value job/d .spec.suspend true; until_true job/b Complete
[ -z "$(kubectl get workloads -o jsonpath='{.items[*].status.reclaimablePods}')" ]`

	kueueReclaims = `until_value $(kubectl get workloads -o name | grep job-a-) '.status.reclaimablePods[0].count' 1`

	// keepQueue keeps the queue for the next commands.
	keepQueue = "trap - EXIT; "
)

// While the engine is away, Kueue reclaims no quota, and does all else. When it is back, what waits goes on by itself.
func TestKueueWaitsForTheEngine(t *testing.T) {
	kueueWithEngine.check(t, kueueWithEngine.chosen("engine-away"))
	plane := startPlane(t)
	ours.takeOver(t, plane)
	e := startEngine(t, engineProgram(t))
	prepareKueue(t, plane).asking(e).startAndMeasure(t, plane)
	makeNamespace(t, kubernetes.NewForConfigOrDie(plane.RESTConfig()), "away")
	stage := stage{plane.Kubeconfig(), plane.RESTConfig(), ours}
	run := func(commands string) {
		t.Helper()
		if out, err := stage.bash(t, kueueWithEngine, "away", commands).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}

	run(keepQueue + kueueBegins)
	e.kill()
	lost := time.Now()
	run(keepQueue + kueueHoldsQuota)
	begin := time.Now()
	run(keepQueue + kueueGoesOn)
	t.Logf("without the engine, a Job was stopped and the next one done in %.1f s", time.Since(begin).Seconds())
	time.Sleep(time.Until(lost.Add(away)))
	e.start(t)
	back := time.Now()
	run(kueueReclaims)
	took := time.Since(back)
	t.Logf("the quota was reclaimed %.1f s after the engine came back", took.Seconds())
	if took > goesOn {
		t.Errorf("that took longer than %s", goesOn)
	}
}
