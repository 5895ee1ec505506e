package clients

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/node/specs"
)

// ownSpecs are end-to-end specs of a client's own. build.sh compiles them from its module.
type ownSpecs struct {
	client
	suites []suite
	// runs are how the texts of those specs begin that run, leaves those of the others. Each spec is in one of them.
	runs   []string
	leaves []leftSpec
}

// A suite is a program that holds specs. The specs of some make objects of the same names, and so run one after the other.
type suite struct {
	program string
	serial  bool
}

// atATime is how many specs run beside each other. They wait for ten seconds in many places.
const atATime = 2

// A specRun is what runs specs.
type specRun struct {
	// env and flags are what their programs need.
	env, flags []string
	// chosen are those that run, programs the program of each, by its text. left are the others, with the reason.
	chosen   []specs.Spec
	programs map[string]string
	left     []string
	// dir is a folder for what is written.
	dir string
}

// prepare finds out which specs there are, and which of them run. It skips the test if none does.
func (o ownSpecs) prepare(t *testing.T, r specRun) specRun {
	t.Helper()
	r.dir, r.programs = t.TempDir(), map[string]string{}
	r.env = append(r.env, "ARTIFACTS="+r.dir)
	serial := map[string]bool{}
	var all []string
	for _, suite := range o.suites {
		program := filepath.Join(programsDir(t), suite.program)
		for _, text := range r.list(t, program) {
			all = append(all, text)
			r.programs[text], serial[text] = program, suite.serial
		}
	}
	run, left, err := divide(all, o.runs, o.leaves)
	must.Succeed(t, err)
	for _, text := range run {
		if o.client.chosen(text) {
			r.chosen = append(r.chosen, specs.Spec{Text: text, Serial: serial[text]})
		}
	}
	if len(r.chosen) == 0 {
		t.Skip("-clients.only leaves nothing")
	}
	r.left, ran = left, true
	return r
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
	must.Succeed(t, err)
	return texts
}

// command is how a program runs.
func (r specRun) command(program, report, flag string) []string {
	return slices.Concat([]string{"env"}, r.env, []string{program}, r.flags,
		[]string{"-ginkgo.no-color", "-ginkgo.json-report=" + report, flag})
}

// compare runs the same specs under the built-in controllers and under ours. Each must pass on both sides.
func (r specRun) compare(t *testing.T, plane *cluster.Cluster) {
	t.Helper()
	results := map[side][]specs.Result{}
	for _, s := range sides {
		if !t.Run(string(s), func(t *testing.T) {
			s.takeOver(t, plane)
			results[s] = r.run(t, plane, r.chosen)
		}) {
			return
		}
	}
	for i, spec := range r.chosen {
		t.Run(spec.Text, func(t *testing.T) { reportSpec(t, results[builtin][i], results[ours][i]) })
	}
	t.Logf("%d specs ran on both sides; left out are %d%s", len(r.chosen), len(r.left), strings.Join(append([]string{""}, r.left...), "\n\t"))
}

// run returns the results in the order of the specs.
func (r specRun) run(t *testing.T, plane *cluster.Cluster, chosen []specs.Spec) []specs.Result {
	t.Helper()
	r.env = append(slices.Clip(r.env), "KUBECONFIG="+plane.Kubeconfig())
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
