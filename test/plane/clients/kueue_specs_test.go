package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jobpolicy.dev/test/node/specs"
)

// kueueOwnSpecs are end-to-end specs of Kueue's own: those that create Jobs. build.sh compiles them from its module.
var kueueOwnSpecs = client{name: "kueue-specs", needs: []string{"kueue", "kueue-specs-singlecluster", "kueue-specs-tas"}}

// kueueSuites are the programs that hold the specs. The specs of some make objects of the same names, and so run one after the
// other.
var kueueSuites = []struct {
	program string
	serial  bool
}{{"kueue-specs-singlecluster", false}, {"kueue-specs-tas", true}}

// atATime is how many specs run beside each other. Kueue's specs wait for ten seconds in many places.
const atATime = 2

// TestKueuesOwnSpecs runs the same specs under the built-in controllers and under ours. Each must pass on both sides.
func TestKueuesOwnSpecs(t *testing.T) {
	kueueOwnSpecs.need(t, kueueOwnSpecs.asked())
	r := specRun{module: moduleDir(t, "kueue", "sigs.k8s.io/kueue"), dir: t.TempDir(), programs: map[string]string{}}
	serial := map[string]bool{}
	var all []string
	for _, suite := range kueueSuites {
		program := filepath.Join(programsDir(t), suite.program)
		for _, text := range r.list(t, program) {
			all = append(all, text)
			r.programs[text], serial[text] = program, suite.serial
		}
	}
	run, left, err := divide(all, kueueRuns, kueueLeaves)
	if err != nil {
		t.Fatal(err)
	}
	run = slices.DeleteFunc(run, func(text string) bool { return !kueueOwnSpecs.chosen(text) })
	if len(run) == 0 {
		t.Skip("-clients.only leaves nothing")
	}
	ran = true
	plane, path := startKueueSpecsPlane(t, r.module)
	r.kubeconfig, r.path = plane.Kubeconfig(), path
	var chosen []specs.Spec
	for _, text := range run {
		chosen = append(chosen, specs.Spec{Text: text, Serial: serial[text]})
	}
	results := map[side][]specs.Result{}
	for _, s := range sides {
		if !t.Run(string(s), func(t *testing.T) {
			s.takeOver(t, plane)
			results[s] = r.run(t, chosen)
		}) {
			return
		}
	}
	for i, text := range run {
		t.Run(text, func(t *testing.T) { reportSpec(t, results[builtin][i], results[ours][i]) })
	}
	t.Logf("%d specs ran on both sides; %d are left out:\n\t%s", len(run), len(left), strings.Join(left, "\n\t"))
}

// A specRun is what programs of Kueue's specs need.
type specRun struct {
	// module is the folder of Kueue's module, dir one for what is written.
	module, dir string
	// programs has the program of each spec, by its text.
	programs map[string]string
	// path has programs that specs call; empty: none run.
	kubeconfig, path string
}

// list returns the texts of the specs that a program holds.
func (r specRun) list(t *testing.T, program string) []string {
	t.Helper()
	report := filepath.Join(r.dir, filepath.Base(program)+".json")
	command := r.command(program, report, "-ginkgo.dry-run")
	if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("list the specs of %s: %v\n%s", program, err, out)
	}
	texts, err := specs.Texts(report)
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// command is how a program runs. Without the label filter it waits for Prometheus before anything runs. PROJECT_DIR is any
// folder in that of Kueue's module: the program looks for files beside it.
func (r specRun) command(program, report, flag string) []string {
	return []string{
		"env", "PATH=" + r.path + ":" + os.Getenv("PATH"), "KUBECONFIG=" + r.kubeconfig, "ARTIFACTS=" + r.dir,
		"PROJECT_DIR=" + filepath.Join(r.module, "bin"),
		program, "-ginkgo.no-color", "-ginkgo.label-filter=!feature:prometheus", "-ginkgo.json-report=" + report, flag,
	}
}

// run returns the results in the order of the specs.
func (r specRun) run(t *testing.T, chosen []specs.Spec) []specs.Result {
	t.Helper()
	return specs.Runner{
		Command: func(s specs.Spec, report string) []string {
			return r.command(r.programs[s.Text], report, "-ginkgo.focus="+regexp.QuoteMeta(s.Text)+"$")
		},
		Parallel: atATime,
		Dir:      t.TempDir(),
		Done:     func(r specs.Result) { t.Log(r.Line()) },
	}.Run(t.Context(), chosen)
}

// reportSpec fails unless a spec has passed on both sides.
func reportSpec(t *testing.T, builtin, ours specs.Result) {
	t.Helper()
	t.Logf("took %.1f s under the built-in controllers, %.1f s under ours", builtin.Seconds, ours.Seconds)
	for s, r := range map[string]specs.Result{"the built-in controllers": builtin, "ours": ours} {
		if !r.Passed {
			t.Errorf("under %s: %s%s\n--- its log\n%s\n---", s, r.Failure, r.Skipped, r.Log)
		}
	}
}
