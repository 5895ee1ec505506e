package clients

import (
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
)

const (
	trainerBegins = `runtime long 'sleep 1000'; runtime short 'sleep 2'
trainjob late 'activeDeadlineSeconds: 20,' long
until_value job/late-node-0 .status.ready 1`

	// Another TrainJob with a deadline ends well, and one without begins again and fails.
	trainerGoesOn = `runtime fails 'exit 1' 'failurePolicy: {maxRestarts: 1},'
trainjob in-time 'activeDeadlineSeconds: 20,' short; trainjob fails ''
until_true trainjob/in-time Complete; until_true trainjob/fails Failed`

	// The deadline has passed; nobody knows.
	trainerKeepsRunning = `for i in $(seq 30); do
	[ "$(kubectl get job late-node-0 -o jsonpath='{.status.ready}')" = 1 ]
	[ -z "$(kubectl get trainjob late -o jsonpath='{.status.conditions}')" ]
	sleep 1
done`

	trainerFails = `until_true trainjob/late Failed; kubectl wait --for=delete jobset/late --timeout=60s`
)

// While the engine is away, no TrainJob fails at its deadline, and Trainer does all else. When it is back, what waits goes
// on by itself.
func TestTrainerWaitsForTheEngine(t *testing.T) {
	trainerWithEngine.check(t, trainerWithEngine.chosen("engine-away"))
	plane := startPlane(t)
	ours.takeOver(t, plane)
	e := startEngine(t, engineProgram(t))
	prepareTrainer(t, plane).asking(e).startAndMeasure(t, plane)
	makeNamespace(t, kubernetes.NewForConfigOrDie(plane.RESTConfig()), "away")
	stage := stage{plane.Kubeconfig(), plane.RESTConfig(), ours}
	run := func(commands string) time.Duration {
		t.Helper()
		begin := time.Now()
		if out, err := stage.bash(t, trainerWithEngine, "away", commands).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return time.Since(begin)
	}

	run(trainerBegins)
	e.kill()
	lost := time.Now()
	t.Logf("without the engine, two TrainJobs ended in %.1f s", run(trainerGoesOn).Seconds())
	run(trainerKeepsRunning)
	time.Sleep(time.Until(lost.Add(away)))
	run(`[ "$(kubectl get job late-node-0 -o jsonpath='{.status.ready}')" = 1 ]`)
	e.start(t)
	took := run(trainerFails)
	t.Logf("the TrainJob failed and its JobSet was gone %.1f s after the engine came back", took.Seconds())
	if took > goesOn {
		t.Errorf("that took longer than %s", goesOn)
	}
}
