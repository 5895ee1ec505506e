package plugin_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/plugin"
)

var rewrite = flag.Bool("rewrite", false, "write what the commands print into testdata")

// run runs a command line in the top folder of the repository, and returns what it
// prints on either output, with its exit code if that is not 0. What follows < is read as
// standard input.
func run(t *testing.T, args []string) string {
	t.Helper()
	var out, in bytes.Buffer
	if n := len(args); n > 2 && args[n-2] == "<" {
		data, err := os.ReadFile(args[n-1])
		if err != nil {
			t.Fatal(err)
		}
		in.Write(data)
		args = args[:n-2]
	}
	code := plugin.Run(t.Context(), args, cli.IO{In: &in, Out: &out, Err: &out})
	if code != cli.ExitOK {
		fmt.Fprintf(&out, "(exit code %d)\n", code)
	}
	return out.String()
}

// words cuts a command line as a shell does; only single quotes are known.
func words(line string) []string {
	var out []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
			continue
		}
		out = append(out, strings.Fields(part)...)
	}
	return out
}

// TestGolden runs the commands of testdata, each a line that begins with
// "$ kubectl jobpolicy", and compares what they print. Run with -rewrite after a
// change, and read the difference.
func TestGolden(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	plugin.SetNow(t, time.Date(2026, time.October, 24, 12, 0, 0, 0, time.UTC))
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir("../../..")
			var got strings.Builder
			for _, line := range strings.Split(string(want), "\n") {
				if command, ok := strings.CutPrefix(line, "$ kubectl jobpolicy "); ok {
					fmt.Fprintf(&got, "%s\n%s\n", line, run(t, words(command)))
				}
			}
			if *rewrite {
				if err := os.WriteFile(filepath.Join(here, path), []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

// Each example of the documents is played in a golden file.
func TestEveryExampleIsPlayed(t *testing.T) {
	golden, err := os.ReadFile("testdata/simulate-examples.txt")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Glob("../../../deploy/examples/*.yaml")
	if err != nil || len(examples) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, example := range examples {
		if command := "simulate -f deploy/examples/" + filepath.Base(example); !strings.Contains(string(golden), command) {
			t.Errorf("testdata/simulate-examples.txt has no command with %q", command)
		}
	}
}
