package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"jobpolicy.dev/deploy/local/must"
)

var kueueWithEngine = asking(kueue, prepareKueue)

func TestKueueWithEngine(t *testing.T) { compare(t, kueueWithEngine) }

// kueueDefects are engines that Kueue's own tests, or ours beside them, and the conformance kit must find.
var kueueDefects = map[string]defect{
	"one index too many is missing":  {"engine/questions.go", "int64(completions) - progress.taken(busy).Len()", "1 + int64(completions) - progress.taken(busy).Len()"},
	"a failed index gets pods again": {"engine/indexprogress.go", "p.succeededIndexes.Union(p.failedIndexes).Union(busy)", "p.succeededIndexes.Union(busy)"},
	"a counter may decrease by one":  {"engine/statusrules/counts.go", "if after < before {", "if after < before-1 {"},
}

const (
	kueueJobs = "./pkg/controller/jobs/job/"
	// kueueSpecs are specs of Kueue on an API server with etcd, whose Jobs have a status that the specs write.
	kueueSpecs = "./test/integration/singlecluster/controller/jobs/job/"
)

// Kueue's own tests pass with the engine as it is: those of its Jobs, and those on an API server with etcd. So does the
// conformance kit.
func TestKueuesOwnTestsWithEngine(t *testing.T) {
	kueueWithEngine.check(t, kueueWithEngine.chosen("own-tests"))
	e := startEngine(t, engineProgram(t))
	out, err := kueueWithEngine.test(t, e, kueueJobs, "-bench=.", "-benchtime=2000x")
	if err != nil {
		t.Errorf("Kueue's functions: %v\n%s", err, out)
	}
	t.Logf("one question at a time:\n%s", benchmarks(out))
	writeKueueDefinitions(t)
	if out, err := kueueWithEngine.test(t, e, kueueSpecs, "-ginkgo.no-color", "-ginkgo.succinct"); err != nil {
		t.Errorf("Kueue's specs: %v\n%s", err, out)
	}
	if out, err := e.conformance(t); err != nil {
		t.Errorf("conformance kit: %v\n%s", err, out)
	}
}

// writeKueueDefinitions writes the definitions of Kueue's kinds to where its specs read them.
func writeKueueDefinitions(t *testing.T) {
	t.Helper()
	folder := filepath.Join(programsDir(t), "source", kueueWithEngine.name, "config", "components", "crd")
	definitions, err := exec.CommandContext(t.Context(), filepath.Join(programsDir(t), "kubectl"), "kustomize", folder).Output()
	must.Succeed(t, err)
	must.Succeed(t, os.MkdirAll(filepath.Join(folder, "_output"), 0o755))
	must.Succeed(t, os.WriteFile(filepath.Join(folder, "_output", "crds-with-webhooks.yaml"), definitions, 0o644))
}

// Kueue's own tests, or ours beside them, and the conformance kit find a wrong engine.
func TestKueueFindsWrongEngines(t *testing.T) {
	kueueWithEngine.check(t, kueueWithEngine.chosen("wrong-engines"))
	for name, d := range kueueDefects {
		t.Run(name, func(t *testing.T) {
			e := startEngine(t, d.build(t))
			out, err := kueueWithEngine.test(t, e, kueueJobs)
			if t.Logf("found by %v", failed(out)); len(failed(out)) == 0 {
				t.Errorf("no test fails; they ended with %v:\n%s", err, out)
			}
			if out, err := e.conformance(t); err == nil || !strings.Contains(out, "CASES") {
				t.Errorf("the conformance kit accepts it, or did not ask it (%v):\n%s", err, out)
			}
		})
	}
}
