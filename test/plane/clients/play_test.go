package clients

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/controlplane"
	"jobpolicy.dev/test/plane/clients/history"
)

// A recording is what a scenario came to.
type recording struct {
	lines   []string
	times   []string
	figures []figure
	took    time.Duration
}

// write writes what is compared, and when it was seen, into files in the folder of -clients.write.
func (r recording) write(t *testing.T, name string) {
	t.Helper()
	if *writeFlag == "" {
		return
	}
	must.Succeed(t, os.MkdirAll(*writeFlag, 0o755))
	for suffix, lines := range map[string][]string{".txt": r.lines, ".times": r.times} {
		must.Succeed(t, os.WriteFile(filepath.Join(*writeFlag, name+suffix), []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	}
}

// fileName is the name of the files of a recording, without its end.
func fileName(c client, scenario string, s side) string {
	return c.name + "-" + scenario + "." + string(s)
}

// A stage is a cluster on which scenarios run.
type stage struct {
	kubeconfig string
	config     *rest.Config
	side       side
}

// scenarioTimeout bounds one script.
const scenarioTimeout = 10 * time.Minute

// play runs a scenario in a namespace of its own, and records it. The namespace goes with the test, which
// shows that no pod keeps a finalizer.
func (s stage) play(t *testing.T, c client, scenario string) recording {
	t.Helper()
	namespace := c.name + "-" + scenario
	recorder := record(t, s.config, c, namespace)
	var onWorker *history.Recorder
	if c.worker != nil {
		onWorker = record(t, c.worker.RESTConfig(), c, namespace)
	}
	begin := time.Now()
	output, err := s.script(t, c, scenario, namespace).CombinedOutput()
	took := time.Since(begin)
	settle(t, recorder)
	if err != nil {
		t.Errorf("%v; the script printed\n%s\nhistory:\n%s", err, output, strings.Join(recorder.Lines(), "\n"))
	}
	r := recording{took: took, times: recorder.Times()}
	for line := range strings.Lines(string(output)) {
		line = strings.TrimRight(line, " \n")
		if what, ok := strings.CutPrefix(line, "measure "); ok {
			r.figures = append(r.figures, measure(recorder, what))
			continue
		}
		if limit, ok := strings.CutPrefix(line, "pods at most "); ok {
			checkMostPods(t, recorder, limit)
			continue
		}
		if infoLog.MatchString(line) {
			continue
		}
		r.lines = append(r.lines, "prints "+history.Clean(line))
	}
	r.lines = append(r.lines, recorder.Lines()...)
	if onWorker != nil {
		settle(t, onWorker)
		for _, line := range onWorker.Lines() {
			r.lines = append(r.lines, "worker: "+line)
		}
	}
	return r
}

// record makes a namespace of a scenario, and begins to record it.
func record(t *testing.T, config *rest.Config, c client, namespace string) *history.Recorder {
	t.Helper()
	makeNamespace(t, kubernetes.NewForConfigOrDie(config), namespace)
	recorder, err := history.Record(t.Context(), dynamic.NewForConfigOrDie(config), namespace, c.objects...)
	must.Succeed(t, err)
	return recorder
}

// checkMostPods fails if there were more pods at a time than a scenario allows.
func checkMostPods(t *testing.T, recorder *history.Recorder, limit string) {
	t.Helper()
	allowed, err := strconv.Atoi(limit)
	if err != nil {
		t.Fatalf("pods at most %q: expected a number", limit)
	}
	most := recorder.MostPods()
	t.Logf("at most %d pods at a time; %d are allowed", most, allowed)
	if most > allowed {
		t.Errorf("%d pods at a time; at most %d are allowed", most, allowed)
	}
}

// settle ends a recording once nothing changes any more.
func settle(t *testing.T, recorder *history.Recorder) {
	recorder.Settle(t.Context(), 2*time.Second, 30*time.Second)
	recorder.Stop()
}

// infoLog matches what client-go logs at level info inside of a client: for example that a watch was closed and began again.
// That depends on timing, and is not what the client says.
var infoLog = regexp.MustCompile(`^I\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [a-z_]+\.go:\d+\] `)

// A figure is the times between lines of a history.
type figure struct {
	name  string
	spans []time.Duration
}

// median is zero if there are none.
func (f figure) median() time.Duration {
	if len(f.spans) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(f.spans))[len(f.spans)/2]
}

// beside says two figures side by side: medians, and how many they are of.
func (f figure) beside(ours figure) string {
	if len(f.spans) == 0 || len(ours.spans) == 0 {
		return f.name + ": not seen on both sides"
	}
	a, b := f.median().Seconds(), ours.median().Seconds()
	return fmt.Sprintf("%s: %.3f s under the built-in controllers (median of %d), %.3f s under ours (of %d): %.2f times", f.name, a, len(f.spans), b, len(ours.spans), b/a)
}

// measure reads "name|line from which|line to which". Lines are named by how they begin.
func measure(recorder *history.Recorder, what string) figure {
	part := strings.Split(what, "|")
	if len(part) != 3 {
		return figure{name: "not understood: " + what}
	}
	return figure{part[0], recorder.Spans(part[1], part[2])}
}

// script is the command that plays a scenario.
func (s stage) script(t *testing.T, c client, scenario, namespace string) *exec.Cmd {
	t.Helper()
	return s.bash(t, c, namespace, ". $TESTDATA/"+c.folder()+"/"+scenario+".sh")
}

// bash is the command that runs shell commands after what every scenario of a client may use.
func (s stage) bash(t *testing.T, c client, namespace, commands string) *exec.Cmd {
	t.Helper()
	folder, err := filepath.Abs("testdata")
	must.Succeed(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), scenarioTimeout)
	t.Cleanup(cancel)
	before := fmt.Sprintf(". $TESTDATA/prelude.sh; if [ -e $TESTDATA/%[1]s.sh ]; then . $TESTDATA/%[1]s.sh; fi; ", c.folder())
	script := exec.CommandContext(ctx, "bash", "-c", before+commands)
	home := t.TempDir()
	script.Dir = home
	script.Env = append(os.Environ(),
		"TESTDATA="+folder,
		"HOME="+home,
		"PATH="+programsDir(t)+":"+os.Getenv("PATH"),
		"KUBECONFIG="+s.kubeconfigFor(t, namespace),
		"SIDE="+string(s.side))
	if c.worker != nil {
		worker := stage{kubeconfig: c.worker.Kubeconfig()}
		script.Env = append(script.Env, "WORKER="+worker.kubeconfigFor(t, namespace))
	}
	script.WaitDelay = 10 * time.Second
	return script
}

// kubeconfigFor writes a kubeconfig whose namespace is that of a scenario.
func (s stage) kubeconfigFor(t *testing.T, namespace string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(s.kubeconfig)
	must.Succeed(t, err)
	config.Contexts[config.CurrentContext].Namespace = namespace
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, clientcmd.WriteToFile(*config, file))
	return file
}

// makeNamespace makes a namespace in which pods can be created, and deletes it when the test ends.
func makeNamespace(t *testing.T, kube kubernetes.Interface, name string) {
	t.Helper()
	controlplane.MakeNamespace(t, kube, name)
	t.Cleanup(func() { controlplane.DeleteNamespace(t, kube, name) })
}

// chosen reports whether -clients.of and -clients.only choose a scenario, or a test that goes by such a name.
func (c client) chosen(scenario string) bool {
	return c.asked() && only.MatchString(c.name+"/"+scenario)
}

// asked reports whether -clients.of chooses the client.
func (c client) asked() bool {
	clients := strings.Fields(*ofFlag)
	return len(clients) == 0 || slices.Contains(clients, c.name)
}

// folder is where its scenarios are.
func (c client) folder() string { return cmp.Or(c.plays, c.name) }

// scenarios are those of a client that -clients.of and -clients.only choose.
func (c client) scenarios(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", c.folder(), "*.sh"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenario of %s: %v", c.name, err)
	}
	var names []string
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".sh")
		if c.chosen(name) {
			names = append(names, name)
		}
	}
	return names
}

// resource is short for what is recorded of a client.
func resource(group, version, plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
}
