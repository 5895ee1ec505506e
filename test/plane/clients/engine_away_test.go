package clients

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/test/kit/controlplane"
)

const (
	// away is how long the engine is away.
	away = time.Minute
	// goesOn is how long it may take then until all is done: two seconds to connect, two until the questions are asked
	// again, and time for the rest on a busy machine.
	goesOn = 15 * time.Second
)

// While the engine is away, no JobSet is completed or deleted, and JobSets that ask nothing go on. When it is back, what waits
// goes on by itself.
func TestJobSetWaitsForTheEngine(t *testing.T) {
	jobsetWithEngine.check(t, jobsetWithEngine.chosen("engine-away"))
	plane := startPlane(t)
	ours.takeOver(t, plane)
	e := startEngine(t, engineProgram(t))
	prepareJobSet(t, plane, "jobset").asking(e).startAndMeasure(t, plane)
	makeNamespace(t, kubernetes.NewForConfigOrDie(plane.RESTConfig()), "away")
	js := jobsets{dynamic.NewForConfigOrDie(plane.RESTConfig()).Resource(jobset.objects[0]).Namespace("away")}

	js.create(t, "expires", "true", "ttlSecondsAfterFinished: 20")
	js.becomes(t, "expires", "Completed")
	e.kill()
	lost := time.Now()
	js.create(t, "succeeds", "true", "")
	js.create(t, "fails", "false", "")
	js.becomes(t, "fails", "Failed")
	t.Logf("a JobSet that asks nothing failed %.1f s after the engine was lost", time.Since(lost).Seconds())
	for time.Since(lost) < away {
		if expires, succeeds := js.state("expires"), js.state("succeeds"); expires != "Completed" || succeeds != "" {
			t.Fatalf("without the engine: expires is %q, succeeds is %q; want Completed and nothing", expires, succeeds)
		}
		time.Sleep(200 * time.Millisecond)
	}
	e.start(t)
	back := time.Now()
	js.becomes(t, "succeeds", "Completed")
	js.becomes(t, "expires", "not found")
	took := time.Since(back)
	t.Logf("all was done %.1f s after the engine came back", took.Seconds())
	if took > goesOn {
		t.Errorf("that took longer than %s", goesOn)
	}
}

// jobsets are the JobSets of a namespace.
type jobsets struct{ dynamic.ResourceInterface }

// create makes a JobSet with one Job of one pod, which runs a command. field is a further field of the spec.
func (js jobsets) create(t *testing.T, name, command, field string) {
	t.Helper()
	manifest := strings.NewReplacer("NAME", name, "COMMAND", command, "FIELD", field).Replace(`
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: NAME}
spec:
  replicatedJobs:
  - name: a
    template: {spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: main, image: none, command: ["COMMAND"]}]}}}}
  FIELD
`)
	if _, err := js.Create(t.Context(), parseManifests(t, []byte(manifest))[0], metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// state is how a JobSet ended; empty if it has not, "not found" if it is gone.
func (js jobsets) state(name string) string {
	o, err := js.Get(context.Background(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "not found"
	}
	if err != nil {
		return err.Error()
	}
	state, _, _ := unstructured.NestedString(o.Object, "status", "terminalState")
	return state
}

func (js jobsets) becomes(t *testing.T, name, want string) {
	t.Helper()
	controlplane.Eventually(t, name+" becomes "+want, func() (bool, string) { got := js.state(name); return got == want, got })
}
