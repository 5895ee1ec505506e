package bench

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Files in the directory of the documents.
const (
	pageFile = "performance.md"
	dataFile = "performance.json"
)

// What is between these lines of the page is written by the benchmark; the rest
// is kept.
const (
	pageBegin = "<!-- measured: begin (make bench-full writes what follows) -->"
	pageEnd   = "<!-- measured: end -->"
)

// newPage is the page before anything is measured.
//
//go:embed page.md
var newPage string

// plotted are the figures that are drawn, by file name.
var plotted = []struct {
	file string
	Figure
}{
	{"performance-makespan.svg", Makespan},
	{"performance-latency.svg", LatencyP50},
	{"performance-cpu.svg", CPUPerPod},
	{"performance-status-writes.svg", StatusWrites},
	{"performance-memory.svg", PeakMemory},
}

// A Measurement is all that is published, from one run or several.
type Measurement struct {
	// Machine describes where the results are from.
	Machine string   `json:"machine"`
	Results []Result `json:"results"`
}

// WriteDocs puts results into the documents in dir: the data, the plots, and
// their part of the page. Results of the same scenario and contender are
// replaced; so is everything of another size, except what is huge.
func WriteDocs(dir string, m Measurement) error {
	old, err := readData(filepath.Join(dir, dataFile))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	m.Results = merge(old.Results, m.Results)
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	files := map[string]string{dataFile: string(data) + "\n"}
	for _, p := range plotted {
		files[p.file] = Plot(p.Figure, m.Results)
	}
	if files[pageFile], err = page(dir, m); err != nil {
		return err
	}
	for name, text := range files {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func readData(path string) (Measurement, error) {
	var m Measurement
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	return m, err
}

// merge replaces old results by new ones.
func merge(old, fresh []Result) []Result {
	kept := slices.DeleteFunc(slices.Clone(old), func(o Result) bool {
		return slices.ContainsFunc(fresh, func(f Result) bool {
			same := o.Scenario == f.Scenario && o.Contender == f.Contender
			return same || (o.Size != f.Size && o.Size != Huge && f.Size != Huge)
		})
	})
	all := append(kept, fresh...)
	// S8-1000 before S8-10000.
	slices.SortStableFunc(all, func(a, b Result) int {
		return cmp.Or(cmp.Compare(a.Scenario[:2], b.Scenario[:2]), cmp.Compare(len(a.Scenario), len(b.Scenario)), cmp.Compare(a.Scenario, b.Scenario))
	})
	return all
}

// page is the page with what was measured between its marks.
func page(dir string, m Measurement) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, pageFile))
	if errors.Is(err, fs.ErrNotExist) {
		text, err = []byte(newPage), nil
	}
	if err != nil {
		return "", err
	}
	before, rest, hasBegin := strings.Cut(string(text), pageBegin)
	_, after, hasEnd := strings.Cut(rest, pageEnd)
	if !hasBegin || !hasEnd {
		return "", fmt.Errorf("%s: the lines %q and %q are missing", pageFile, pageBegin, pageEnd)
	}
	return before + pageBegin + "\n\n" + measured(m) + "\n" + pageEnd + after, nil
}

func measured(m Measurement) string {
	var out strings.Builder
	var sources []string
	for _, r := range m.Results {
		source := fmt.Sprintf("`%s` at commit %s", commands[r.Size], r.Commit)
		if r.Runs > 1 {
			source += fmt.Sprintf(" (medians of %d runs)", r.Runs)
		}
		if !slices.Contains(sources, source) {
			sources = append(sources, source)
		}
	}
	fmt.Fprintf(&out, "Measured by %s, on %s.\n\n", strings.Join(sources, ", "), m.Machine)
	out.WriteString("The two services' ratio to the built-in controller; bold is clearly less:\n\n" + Glance(m.Results) + "\n")
	for _, p := range plotted {
		fmt.Fprintf(&out, "![%s](%s)\n", textOf(p.Figure).title, p.file)
	}
	out.WriteString("\nThe scenarios:\n\n" + ScenarioList(m.Results))
	out.WriteString("\n÷ is the ratio to the built-in controller; (a) says whether the bar is met.\n\n" + Table(m.Results))
	out.WriteString("\nAPI calls a pod:\n\n" + CallsTable(m.Results))
	return out.String()
}

// commands are how the sizes are run.
var commands = map[Size]string{Tiny: "make test", Small: "make bench", Full: "make bench-full", Huge: "make bench-huge"}

// Machine describes this machine without naming it.
func Machine() string {
	text := fmt.Sprintf("%d processors", runtime.NumCPU())
	if model := afterColon("/proc/cpuinfo", "model name"); model != "" {
		text += " (" + model + ")"
	}
	var kib float64
	if _, err := fmt.Sscanf(afterColon("/proc/meminfo", "MemTotal"), "%f kB", &kib); err == nil {
		text += fmt.Sprintf(", %.0f GiB of memory", kib/(1<<20))
	}
	return text + fmt.Sprintf(", %s/%s, %s; the API server, etcd and the simulated kubelet on the same machine", runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// afterColon is the value of a line "name : value" of a file; empty without one.
func afterColon(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		key, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
