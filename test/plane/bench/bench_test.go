package bench

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/executables"
)

var (
	sizeFlag       = flag.String("bench.size", string(Tiny), "tiny (counts only matter), small (minutes), full (an hour and more) or huge (100,000 concurrent pods)")
	scenariosFlag  = flag.String("bench.scenarios", "", "regular expression: only these scenarios, S1 to S9")
	repeatFlag     = flag.Int("bench.repeat", 1, "how often each scenario is run; figures are medians")
	profileFlag    = flag.String("bench.profile", "", "directory for CPU profiles of the contenders (profiling costs them time); empty: none")
	docsFlag       = flag.String("bench.docs", "", "directory of performance.md, in which to write the results as tables and plots; empty: they are only shown")
	rewrite        = flag.Bool("rewrite", false, "write the tables and plots of docs/ anew from docs/performance.json")
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

// TestBenchmark runs the scenarios under every contender. It fails if a count is
// wrong, and never because of a time.
func TestBenchmark(t *testing.T) {
	cfg := Config{
		BinDir: executables.MustDir(t), Dir: t.TempDir(), Size: Size(*sizeFlag), Commit: commit(),
		Scenarios: pattern(t, *scenariosFlag), Contenders: pattern(t, *contendersFlag),
		Repeat: *repeatFlag, ProfileDir: *profileFlag,
		Progress: func(line string) { fmt.Println(line) },
	}
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	results, err := Run(ctx, cfg)
	if cfg.Size != Tiny || err != nil {
		fmt.Printf("\n%s at commit %s, on %s\n\n%s\n%s\n%s", cfg.Size, cfg.Commit, Machine(), ScenarioList(results), Table(results), CallsTable(results))
	}
	must.Succeed(t, err)
	if len(results) == 0 {
		t.Fatal("no scenario and no contender of these names")
	}
	if *docsFlag != "" {
		must.Succeed(t, WriteDocs(*docsFlag, Measurement{Machine: Machine(), Results: results}))
	}
}

// commit names the source that is measured. A plus sign means that it has changes
// that are not committed.
func commit() string {
	head, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	changes, err := exec.Command("git", "status", "--porcelain", "--", ":/", ":!/docs").Output()
	name := strings.TrimSpace(string(head))
	if err != nil || len(changes) > 0 {
		name += "+"
	}
	return name
}

func pattern(t *testing.T, text string) *regexp.Regexp {
	t.Helper()
	if text == "" {
		return nil
	}
	re, err := regexp.Compile(text)
	must.Succeed(t, err)
	return re
}
