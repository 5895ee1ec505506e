package clients

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/test/kit/executables"
)

// jobsetWithEngine is JobSet with a few files of ours, which ask the engine (docs/adopt.md). It plays beside our executor;
// beside the built-in controllers, JobSet as it is does.
var jobsetWithEngine = client{
	name:    "jobset-with-engine",
	plays:   "jobset",
	needs:   []string{"kubectl", "jobset", "jobset-with-engine"},
	objects: jobset.objects,
	install: installJobSetWithEngine,
}

func installJobSetWithEngine(t *testing.T, plane *cluster.Cluster) func(*testing.T, side) {
	t.Helper()
	asIs := prepareJobSet(t, plane, "jobset")
	return func(t *testing.T, s side) {
		t.Helper()
		if s == builtin {
			asIs.start(t, plane)
			return
		}
		asIs.asking(startEngine(t, engineProgram(t))).startAndMeasure(t, plane)
	}
}

// asking is the manager of JobSet that asks an engine, in place of JobSet as it is.
func (m manager) asking(e *engine) manager {
	arguments := append([]string{"jobset-with-engine"}, m.command[1:]...)
	m.name, m.command = "jobset-with-engine", append(append(e.variables(), arguments...), "--zap-log-level=4")
	return m
}

// startAndMeasure is start; when the test ends, it says how many questions were asked, and how long they took.
func (m manager) startAndMeasure(t *testing.T, plane *cluster.Cluster) {
	t.Helper()
	log := m.start(t, plane)
	t.Cleanup(func() {
		for method, took := range questions(t, log) {
			slices.Sort(took)
			t.Logf("%s: %d calls, median %s, p99 %s", method, len(took), took[len(took)/2], took[len(took)*99/100])
		}
	})
}

// question is the line of the log about an answered question.
var question = regexp.MustCompile(`asked the policy engine.*"method": ?"/jobpolicy.v1.PolicyService/(\w+)".*"microseconds": ?(\d+)`)

// questions reads how long each answered question of a manager took.
func questions(t *testing.T, log string) map[string][]time.Duration {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	took := map[string][]time.Duration{}
	for _, m := range question.FindAllSubmatch(text, -1) {
		us, _ := strconv.Atoi(string(m[2])) // The pattern has digits only.
		took[string(m[1])] = append(took[string(m[1])], time.Duration(us)*time.Microsecond)
	}
	return took
}

func TestJobSetWithEngine(t *testing.T) { compare(t, jobsetWithEngine) }

// defects are engines that JobSet's own tests and the conformance kit must find.
var defects = map[string]defect{
	"a time to live ends a second late":   {"engine/ttl.go", "Add(time.Duration(e.seconds)*time.Second)", "Add(time.Duration(e.seconds+1)*time.Second)"},
	"a success rule needs one index more": {"engine/successpolicy.go", "have >= int64(rule.GetSucceededCount())", "have > int64(rule.GetSucceededCount())"},
}

// JobSet's own tests pass with the engine as it is: those of its functions, and those on an API server with etcd. So does
// the conformance kit.
func TestJobSetsOwnTestsWithEngine(t *testing.T) {
	jobsetWithEngine.check(t, jobsetWithEngine.chosen("own-tests"))
	e := startEngine(t, engineProgram(t))
	out, err := e.functions(t, "-bench=.", "-benchtime=2000x")
	if err != nil {
		t.Errorf("JobSet's functions: %v\n%s", err, out)
	}
	t.Logf("one question at a time:\n%s", strings.Join(regexp.MustCompile("(?m)^Benchmark.*").FindAllString(out, -1), "\n"))
	if out, err := e.specs(t, "-ginkgo.skip="+needsAConflict); err != nil {
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
func TestWrongEnginesAreFound(t *testing.T) {
	jobsetWithEngine.check(t, jobsetWithEngine.chosen("wrong-engines"))
	for name, d := range defects {
		t.Run(name, func(t *testing.T) {
			e := startEngine(t, d.build(t))
			functions, functionsErr := e.functions(t)
			specs, specsErr := e.specs(t, "-ginkgo.focus=success policy")
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

// functions runs the tests of JobSet's controllers that need no server, and ours beside them.
func (e *engine) functions(t *testing.T, flags ...string) (string, error) {
	t.Helper()
	return e.test(t, "./pkg/controllers/", flags)
}

// specs runs the tests of JobSet's controllers on an API server with etcd.
func (e *engine) specs(t *testing.T, flags ...string) (string, error) {
	t.Helper()
	return e.test(t, "./test/integration/controller/", append(flags, "-ginkgo.no-color", "-ginkgo.succinct"))
}

func (e *engine) test(t *testing.T, pkg string, flags []string) (string, error) {
	t.Helper()
	source := filepath.Join(programsDir(t), "source", "jobset-with-engine")
	env := append(e.variables(), "GOWORK=off", "KUBEBUILDER_ASSETS="+servers(t))
	return tryGo(t, source, env, append([]string{"test", "-mod=mod", "-count=1", "-timeout=20m", pkg}, flags...)...)
}

// servers is a folder with the servers that tests of controllers start.
func servers(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, server := range []string{"etcd", "kube-apiserver"} {
		script := fmt.Sprintf("#!/bin/sh\nexec %s/jobpolicy-local %s \"$@\"\n", executables.MustDir(t), server)
		if err := os.WriteFile(filepath.Join(dir, server), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// conformance runs the conformance kit.
func (e *engine) conformance(t *testing.T) (string, error) {
	t.Helper()
	root, err := executables.Repository()
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(e.certificates, name) }
	return tryGo(t, root, nil, "run", "./services/cmd/jobpolicy-conformance", "--address", "dns:///"+e.address,
		"--engine-ca-file", file("ca.crt"), "--engine-cert-file", file("tls.crt"), "--engine-key-file", file("tls.key"))
}

// failed are the names of the tests and specs that failed.
func failed(out string) []string {
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^--- FAIL: (\w+)|^  \[FAIL\] (.*)`).FindAllStringSubmatch(out, -1) {
		names = append(names, m[1]+m[2])
	}
	return names
}
