package clients

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobpolicy.dev/deploy/local/must"
)

var trainerWithEngine = asking(trainer, prepareTrainer)

func TestTrainerWithEngine(t *testing.T) { compare(t, trainerWithEngine) }

// trainerDefects are engines that Trainer's own tests, or ours beside them, and the conformance kit must find.
var trainerDefects = map[string]defect{
	"a deadline passes a second late":    {"engine/deadline.go", "return elapsed, elapsed >= seconds", "return elapsed, elapsed > seconds"},
	"a suspended Job's deadline runs on": {"engine/deadline.go", "l.spec.ActiveDeadlineSeconds != nil && !l.spec.GetSuspend()", "l.spec.ActiveDeadlineSeconds != nil"},
}

const (
	trainerFunctions = "./pkg/controller/"
	// trainerSpecs are specs of Trainer's controllers on an API server with etcd, without JobSet.
	trainerSpecs = "./test/integration/controller/"
)

// Trainer's own tests pass with the engine as it is: those of its functions, and those on an API server with etcd. So does
// the conformance kit.
func TestTrainersOwnTestsWithEngine(t *testing.T) {
	trainerWithEngine.check(t, trainerWithEngine.chosen("own-tests"))
	e := startEngine(t, engineProgram(t))
	out, err := trainerWithEngine.test(t, e, trainerFunctions, "-bench=.", "-benchtime=2000x")
	if err != nil {
		t.Errorf("Trainer's functions: %v\n%s", err, out)
	}
	t.Logf("one question at a time:\n%s", benchmarks(out))
	writeTrainerDefinitions(t)
	if out, err := trainerWithEngine.test(t, e, trainerSpecs, "-ginkgo.no-color", "-ginkgo.succinct"); err != nil {
		t.Errorf("Trainer's specs: %v\n%s", err, out)
	}
	if out, err := e.conformance(t); err != nil {
		t.Errorf("conformance kit: %v\n%s", err, out)
	}
}

// volcanoDefinition is the kind of Volcano that Trainer's specs install. No module has it; Trainer downloads it.
const volcanoDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: podgroups.scheduling.volcano.sh}
spec:
  group: scheduling.volcano.sh
  scope: Namespaced
  names: {kind: PodGroup, listKind: PodGroupList, plural: podgroups, singular: podgroup}
  versions:
  - name: v1beta1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// writeTrainerDefinitions writes the definitions of kinds of others to where Trainer's specs read them.
func writeTrainerDefinitions(t *testing.T) {
	t.Helper()
	folder := filepath.Join(programsDir(t), "source", trainerWithEngine.name, "manifests", "external-crds")
	must.Succeed(t, os.RemoveAll(folder))
	for name, from := range map[string]string{
		"jobset-operator":   filepath.Join(moduleDir(t, "trainer", "sigs.k8s.io/jobset"), "config", "components", "crd", "bases"),
		"scheduler-plugins": filepath.Join(moduleDir(t, "trainer", "sigs.k8s.io/scheduler-plugins"), "manifests", "coscheduling"),
	} {
		must.Succeed(t, os.CopyFS(filepath.Join(folder, name), os.DirFS(from)))
	}
	volcano := filepath.Join(folder, "volcano")
	must.Succeed(t, os.Mkdir(volcano, 0o755))
	must.Succeed(t, os.WriteFile(filepath.Join(volcano, "scheduling.volcano.sh_podgroups.yaml"), []byte(volcanoDefinition), 0o644))
}

// Trainer's own tests, or ours beside them, and the conformance kit find a wrong engine.
func TestTrainerFindsWrongEngines(t *testing.T) {
	trainerWithEngine.check(t, trainerWithEngine.chosen("wrong-engines"))
	writeTrainerDefinitions(t)
	for name, d := range trainerDefects {
		t.Run(name, func(t *testing.T) {
			e := startEngine(t, d.build(t))
			functions, functionsErr := trainerWithEngine.test(t, e, trainerFunctions)
			specs, specsErr := trainerWithEngine.test(t, e, trainerSpecs, "-ginkgo.no-color", "-ginkgo.succinct", "-ginkgo.focus=Timeouts")
			found := append(failed(functions), failed(specs)...)
			if t.Logf("found by %v", found); len(found) == 0 {
				t.Errorf("no test fails; they ended with %v and %v:\n%s\n%s", functionsErr, specsErr, functions, specs)
			}
			if out, err := e.conformance(t); err == nil || !strings.Contains(out, "CASES") {
				t.Errorf("the conformance kit accepts it, or did not ask it (%v):\n%s", err, out)
			}
		})
	}
}
