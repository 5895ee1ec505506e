package main

import (
	"bytes"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/plugin"
)

func TestSameAsThePlugin(t *testing.T) {
	t.Chdir("../../..")
	cases := map[string]struct {
		args []string
		want int
	}{
		"a failing index": {[]string{"-f", "deploy/examples/backoff-per-index.yaml", "--pod", "0:fail"}, cli.ExitOK},
		"a distribution":  {[]string{"-f", "deploy/examples/indexed.yaml", "--fail-rate", "0.1", "--runs", "20", "-o", "json"}, cli.ExitOK},
		"no such file":    {[]string{"-f", "nothing.yaml"}, cli.ExitFailed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var alone, within bytes.Buffer
			if code := run(t.Context(), tc.args, cli.IO{In: strings.NewReader(""), Out: &alone, Err: &alone}); code != tc.want {
				t.Errorf("exit code %d, want %d", code, tc.want)
			}
			args := append([]string{"simulate"}, tc.args...)
			plugin.Run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: &within, Err: &within})
			if alone.String() != within.String() || alone.Len() == 0 {
				t.Errorf("output:\n%s\nthat of kubectl jobpolicy simulate:\n%s", &alone, &within)
			}
		})
	}
}

func TestMistakesNameTheProgram(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no file":       {nil, "error: --filename: is required: the file with the Job (- is standard input)\njobpolicy-simulate --help has more\n"},
		"the cluster's": {[]string{"--from", "job/a"}, "error: unknown flag: --from\njobpolicy-simulate --help has more\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if code := run(t.Context(), tc.args, cli.IO{In: strings.NewReader(""), Out: &out, Err: &out}); code != cli.ExitUsage || out.String() != tc.want {
				t.Errorf("exit code %d, output %q, want %q", code, out.String(), tc.want)
			}
		})
	}
}

// The program is the first that people run, so what takes long to compile stays out.
func TestBuildsFast(t *testing.T) {
	list, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, list)
	}
	if found := regexp.MustCompile(`(?m)^(google.golang.org/grpc|go.opentelemetry.io|k8s.io/client-go)(/.*)?$`).FindAll(list, -1); found != nil {
		t.Errorf("links %s", bytes.Join(found, []byte(", ")))
	}
}
