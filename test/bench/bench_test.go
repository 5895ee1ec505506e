package bench

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

var (
	sizeFlag       = flag.String("bench.size", string(Tiny), "tiny (counts only matter), small (minutes), full (an hour and more) or huge (100,000 concurrent pods)")
	scenariosFlag  = flag.String("bench.scenarios", "", "regular expression: only these scenarios, S1 to S8")
	contendersFlag = flag.String("bench.contenders", "", "regular expression: only these contenders")
)

func TestMain(m *testing.M) {
	if os.Getenv(floorEnv) == "" {
		os.Exit(m.Run())
	}
	if err := RunFloor(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

// TestBenchmark fails when a count is wrong, and never because of a time.
func TestBenchmark(t *testing.T) {
	cfg := Config{
		BinDir: binDir(t), Dir: t.TempDir(), Size: Size(*sizeFlag), Commit: "unknown",
		Scenarios: pattern(t, *scenariosFlag), Contenders: pattern(t, *contendersFlag),
		Progress: func(line string) { fmt.Println(line) },
	}
	results, err := Run(t.Context(), cfg)
	for _, r := range results {
		fmt.Printf("%+v\n", r)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func pattern(t *testing.T, text string) *regexp.Regexp {
	t.Helper()
	if text == "" {
		return nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	return re
}

// binDir returns the directory of the executables: JOBPOLICY_BIN_DIR, or bin/
// of this repository after building them.
func binDir(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("JOBPOLICY_BIN_DIR"); dir != "" {
		return dir
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("bash", filepath.Join(root, "deploy/local/build.sh"))
	build.Dir, build.Stdout, build.Stderr = root, os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		t.Fatalf("build the executables: %v", err)
	}
	return filepath.Join(root, "bin")
}
