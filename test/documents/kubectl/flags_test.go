package kubectl

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/tools/clientcmd"

	"jobpolicy.dev/deploy/local/must"
)

// withCluster are the commands that read a cluster.
var withCluster = []string{"explain", "next", "wait", "timeline", "ui", "decisions", "preflight", "simulate"}

// differences are the flags that are deliberately not those of cli-runtime, as COMMAND
// --NAME or COMMAND -LETTER, with the reason. * stands for every command. docs/kubectl.md
// lists them, too.
var differences = map[string]string{
	"* --cache-dir":    "nothing is cached: the commands know the kinds that they read, and discover none",
	"next -n":          "is --number there, and --namespace has no letter",
	"next --namespace": "has no letter, because -n is --number",
}

// A flagLine is what the help says of a flag.
type flagLine struct{ Letter, Type, Default string }

var flagPattern = regexp.MustCompile(`^ +(?:-(\w), )?--([\w-]+)(?: (\S+))? {2,}.*?(?:\(default (.*)\))?$`)

// flagsIn reads the flags of a help, by name.
func flagsIn(help string) map[string]flagLine {
	flags := map[string]flagLine{}
	for line := range strings.Lines(help) {
		if m := flagPattern.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			flags[m[2]] = flagLine{m[1], m[3], m[4]}
		}
	}
	return flags
}

// configFlags are those of cli-runtime.
func configFlags() map[string]flagLine {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(true).AddFlags(fs)
	return flagsIn(fs.FlagUsages())
}

// Each command that reads a cluster has the flags of cli-runtime, which are those of
// kubectl, with their names, letters, types and defaults. No other flag of a command has a
// name or letter of theirs.
func TestFlagsAreThoseOfKubectl(t *testing.T) {
	dir := buildPlugin(t)
	want := configFlags()
	if len(want) < 15 {
		t.Fatalf("flags of cli-runtime: %v, expected more", want)
	}
	seen := map[string]bool{}
	for _, command := range withCluster {
		help, err := exec.CommandContext(t.Context(), filepath.Join(dir, "kubectl-jobpolicy"), command, "--help").Output()
		must.Succeed(t, err)
		deliberate := func(what string) bool {
			for _, key := range []string{command + " " + what, "* " + what} {
				if differences[key] != "" {
					seen[key] = true
					return true
				}
			}
			return false
		}
		got := flagsIn(string(help))
		compareFlags(t, command, got, want, deliberate)
	}
	for what := range differences {
		if !seen[what] {
			t.Errorf("%s is listed as a difference, and is none", what)
		}
	}
}

func compareFlags(t *testing.T, command string, got, want map[string]flagLine, deliberate func(string) bool) {
	t.Helper()
	letters := map[string]string{}
	for name, flag := range want {
		letters[flag.Letter] = name
		have, ok := got[name]
		if diff := cmp.Diff(flag, have); (!ok || diff != "") && !deliberate("--"+name) {
			t.Errorf("%s --%s: defined %t (-want +got):\n%s", command, name, ok, diff)
		}
	}
	delete(letters, "")
	for name, flag := range got {
		if like := letters[flag.Letter]; like != "" && like != name && !deliberate("-"+flag.Letter) {
			t.Errorf("%s -%s is --%s, and --%s in kubectl", command, flag.Letter, name, like)
		}
	}
	for name := range overrideFlags() {
		if _, ok := want[name]; !ok {
			if _, ok := got[name]; ok {
				t.Errorf("%s --%s is no flag of cli-runtime", command, name)
			}
		}
	}
}

// overrideFlags are all flags with which clientcmd overrides a kubeconfig.
func overrideFlags() map[string]flagLine {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	clientcmd.BindOverrideFlags(&clientcmd.ConfigOverrides{}, fs, clientcmd.RecommendedConfigOverrideFlags(""))
	return flagsIn(fs.FlagUsages())
}
