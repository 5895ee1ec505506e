package clients

import (
	"strings"
	"testing"

	"jobpolicy.dev/deploy/local/cluster"
)

var jobsetWithEngine = asking(jobset, func(t *testing.T, plane *cluster.Cluster) manager { return prepareJobSet(t, plane, "jobset") })

func TestJobSetWithEngine(t *testing.T) { compare(t, jobsetWithEngine) }

// jobsetDefects are engines that JobSet's own tests and the conformance kit must find.
var jobsetDefects = map[string]defect{
	"a time to live ends a second late":   {"engine/ttl.go", "Add(time.Duration(e.seconds)*time.Second)", "Add(time.Duration(e.seconds+1)*time.Second)"},
	"a success rule needs one index more": {"engine/successpolicy.go", "have >= int64(rule.GetSucceededCount())", "have > int64(rule.GetSucceededCount())"},
}

// JobSet's own tests pass with the engine as it is: those of its functions, and those on an API server with etcd. So does
// the conformance kit.
func TestJobSetsOwnTestsWithEngine(t *testing.T) {
	jobsetWithEngine.check(t, jobsetWithEngine.chosen("own-tests"))
	e := startEngine(t, engineProgram(t))
	out, err := jobsetFunctions(t, e, "-bench=.", "-benchtime=2000x")
	if err != nil {
		t.Errorf("JobSet's functions: %v\n%s", err, out)
	}
	t.Logf("one question at a time:\n%s", benchmarks(out))
	if out, err := jobsetSpecs(t, e, "-ginkgo.skip="+needsAConflict); err != nil {
		t.Errorf("JobSet's specs: %v\n%s", err, out)
	}
	if out, err := e.conformance(t); err != nil {
		t.Errorf("conformance kit: %v\n%s", err, out)
	}
}

// needsAConflict is a spec that wants an update to be refused. Nothing there refuses it, so it fails unless JobSet happens to
// write at the same time; with JobSet as it is, too.
const needsAConflict = "rejects updates to parallelism and completions"

// JobSet's own tests and the conformance kit find a wrong engine.
func TestJobSetFindsWrongEngines(t *testing.T) {
	jobsetWithEngine.check(t, jobsetWithEngine.chosen("wrong-engines"))
	for name, d := range jobsetDefects {
		t.Run(name, func(t *testing.T) {
			e := startEngine(t, d.build(t))
			functions, functionsErr := jobsetFunctions(t, e)
			specs, specsErr := jobsetSpecs(t, e, "-ginkgo.focus=success policy")
			found := append(failed(functions), failed(specs)...)
			if t.Logf("found by %v", found); len(found) == 0 {
				t.Errorf("no test of JobSet fails; its tests ended with %v and %v:\n%s\n%s", functionsErr, specsErr, functions, specs)
			}
			if out, err := e.conformance(t); err == nil || !strings.Contains(out, "CASES") {
				t.Errorf("the conformance kit accepts it, or did not ask it (%v):\n%s", err, out)
			}
		})
	}
}

// jobsetFunctions runs the tests of JobSet's controllers that need no server, and ours beside them.
func jobsetFunctions(t *testing.T, e *engine, flags ...string) (string, error) {
	t.Helper()
	return jobsetWithEngine.test(t, e, "./pkg/controllers/", flags...)
}

// jobsetSpecs runs the tests of JobSet's controllers on an API server with etcd.
func jobsetSpecs(t *testing.T, e *engine, flags ...string) (string, error) {
	t.Helper()
	return jobsetWithEngine.test(t, e, "./test/integration/controller/", append(flags, "-ginkgo.no-color", "-ginkgo.succinct")...)
}
