package plugin

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
	"jobpolicy.dev/services/internal/testenv"
)

var rewrite = flag.Bool("rewrite", false, "write what the commands print into testdata")

// setNow sets the clock of the commands for a test.
func setNow(t *testing.T, at time.Time) {
	now = func() time.Time { return at }
	t.Cleanup(func() { now = time.Now })
}

// run runs a command line, and returns what it prints on either output. What follows < is
// read as standard input.
func run(t *testing.T, args ...string) (code int, printed string) {
	t.Helper()
	var out, in bytes.Buffer
	if n := len(args); n > 2 && args[n-2] == "<" {
		data := testenv.ReadFile(t, args[n-1])
		in.Write(data)
		args = args[:n-2]
	}
	code = Run(t.Context(), args, cli.IO{In: &in, Out: &out, Err: &out})
	return code, out.String()
}

// runApart runs a command line, and returns what it prints on each output.
func runApart(t *testing.T, args ...string) (code int, printed, errors string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: &err})
	return code, out.String(), err.String()
}

// transcript is what a command line prints on either output, with its exit code if that is
// not 0.
func transcript(t *testing.T, args ...string) string {
	t.Helper()
	code, printed := run(t, args...)
	if code != cli.ExitOK {
		printed += fmt.Sprintf("(exit code %d)\n", code)
	}
	return printed
}

// golden compares with a golden file. With -rewrite it writes the file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := testenv.ReadFile(t, path)
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
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
	setNow(t, time.Date(2026, time.October, 24, 12, 0, 0, 0, time.UTC))
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			want := testenv.ReadFile(t, path)
			t.Chdir("../../..")
			var got strings.Builder
			for _, line := range strings.Split(string(want), "\n") {
				if command, ok := strings.CutPrefix(line, "$ kubectl jobpolicy "); ok {
					fmt.Fprintf(&got, "%s\n%s\n", line, transcript(t, words(command)...))
				}
			}
			golden(t, filepath.Join(here, path), got.String())
		})
	}
}

// Each example of the documents is played in a golden file.
func TestEveryExampleIsPlayed(t *testing.T) {
	golden := testenv.ReadFile(t, "testdata/simulate-examples.txt")
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
