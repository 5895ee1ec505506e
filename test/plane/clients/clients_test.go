package clients

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"jobpolicy.dev/test/plane/clients/history"
)

// askedFor says that clients are built and shall run: `make test-clients` sets it. Without it the tests of this
// package are skipped: clients take minutes to build.
const askedFor = "JOBPOLICY_TEST_CLIENTS"

var (
	onlyFlag     = flag.String("clients.only", ".", "run the scenarios whose name, client/scenario, matches this `regexp`")
	parallelFlag = flag.String("clients.parallel", "6", "how many scenarios run at the same time; they mostly wait")
	writeFlag    = flag.String("clients.write", "", "write what was compared, and when it was seen, into files in this `folder`")
	ofFlag       = flag.String("clients.of", "", "run scenarios of these `clients` alone, separated by blanks")
	only         *regexp.Regexp
)

// comparison gathers which differences showed in any client. compared are the scenarios whose two histories were compared; ran
// says that something was chosen.
var (
	comparison = history.Comparison{Differences: known}
	compared   []string
	ran        bool
)

func TestMain(m *testing.M) {
	flag.Parse()
	only = regexp.MustCompile(*onlyFlag)
	if err := flag.Set("test.parallel", *parallelFlag); err != nil {
		panic(err)
	}
	code := m.Run()
	if len(compared) > 0 {
		fmt.Println("differences:\n\t" + strings.Join(comparison.Summary(), "\n\t"))
	}
	if unused := comparison.Unused(compared); code == 0 && len(unused) > 0 {
		fmt.Fprintf(os.Stderr, "differences that show nowhere any more:\n\t%s\n", strings.Join(unused, "\n\t"))
		code = 1
	}
	if code == 0 && os.Getenv(askedFor) != "" && !ran {
		fmt.Fprintf(os.Stderr, "nothing ran: no scenario of the clients %q matches %q\n", *ofFlag, *onlyFlag)
		code = 1
	}
	os.Exit(code)
}

func TestKubectl(t *testing.T) { compare(t, kubectl) }
func TestJobSet(t *testing.T)  { compare(t, jobset) }
func TestHelm(t *testing.T)    { compare(t, helm) }
func TestKueue(t *testing.T)   { compare(t, kueue) }
func TestTrainer(t *testing.T) { compare(t, trainer) }
func TestKEDA(t *testing.T)    { compare(t, keda) }
func TestKubeRay(t *testing.T) { compare(t, kuberay) }
func TestK9s(t *testing.T)     { compare(t, k9s) }

func TestKueueAlone(t *testing.T) { compare(t, kueueAlone) }

// all are the clients that there are.
var all = []client{kubectl, jobset, helm, kueue, kueueAlone, trainer, keda, kuberay, k9s}

// compare runs the scenarios of a client under both sides, and compares them.
func compare(t *testing.T, c client) {
	t.Helper()
	scenarios := c.scenarios(t)
	c.check(t, len(scenarios) > 0)
	plane := startPlane(t)
	var begin func(*testing.T, side)
	if c.install != nil {
		begin = c.install(t, plane)
	}
	recordings := map[side]map[string]recording{}
	for _, s := range sides {
		t.Run(string(s), func(t *testing.T) {
			s.takeOver(t, plane)
			if begin != nil {
				begin(t, s)
			}
			recordings[s] = stage{plane.Kubeconfig(), plane.RESTConfig(), s}.playAll(t, c, scenarios)
		})
	}
	for _, scenario := range scenarios {
		name := c.name + "/" + scenario
		t.Run(scenario, func(t *testing.T) { report(t, name, recordings[builtin][scenario], recordings[ours][scenario]) })
	}
}

// check is need for a test that then runs.
func (c client) check(t *testing.T, chosen bool) {
	t.Helper()
	c.need(t, chosen)
	ran = true
}

// need skips a test that is not chosen, and fails one whose programs are not built.
func (c client) need(t *testing.T, chosen bool) {
	t.Helper()
	if os.Getenv(askedFor) == "" || *clusterFlag != "" {
		t.Skip("not asked for; make test-clients does")
	}
	if !chosen {
		t.Skip("-clients.of and -clients.only leave nothing")
	}
	if missing := c.missing(t); len(missing) > 0 {
		t.Fatalf("not built (test/plane/clients/build.sh): %v", missing)
	}
}

// playAll runs scenarios beside each other, and returns when all are done.
func (s stage) playAll(t *testing.T, c client, scenarios []string) map[string]recording {
	t.Helper()
	var mu sync.Mutex
	recordings := map[string]recording{}
	ran = ran || len(scenarios) > 0
	t.Run("scenarios", func(t *testing.T) {
		for _, scenario := range scenarios {
			t.Run(scenario, func(t *testing.T) {
				if !slices.Contains(c.alone, scenario) {
					t.Parallel() // They begin when those that run alone are done.
				}
				r := s.play(t, c, scenario)
				r.write(t, fileName(c, scenario, s.side))
				mu.Lock()
				defer mu.Unlock()
				recordings[scenario] = r
			})
		}
	})
	return recordings
}

// report compares the two recordings of a scenario, and shows how long they took and what they measured.
func report(t *testing.T, name string, builtin, ours recording) {
	t.Helper()
	t.Logf("took %.1f s under the built-in controllers, %.1f s under ours", builtin.took.Seconds(), ours.took.Seconds())
	for i, f := range builtin.figures {
		if i < len(ours.figures) {
			t.Log(f.beside(ours.figures[i]))
		}
	}
	compareLines(t, name, builtin.lines, ours.lines)
}

// compareLines fails for what no difference explains.
func compareLines(t *testing.T, name string, builtin, ours []string) {
	t.Helper()
	compared = append(compared, name)
	if left := comparison.Compare(name, builtin, ours); len(left) > 0 {
		t.Errorf("only on the first side, the built-in controllers (-), only on the second, ours (+):\n\t%s", strings.Join(left, "\n\t"))
	}
}
