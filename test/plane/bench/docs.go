package bench

import (
	"cmp"
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
	pageFile = "performance.md" // written by hand, but for what is measured
	dataFile = "performance.json"
)

// The benchmark writes the text between these two lines of the page. All the
// rest of the page is written by hand.
const (
	pageBegin = "<!-- measured: begin (make bench-full DOCS=1 writes what follows) -->"
	pageEnd   = "<!-- measured: end -->"
)

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

// WriteDocs writes results into the documents in dir: the data, the plots, and what
// the page says of them. A new result replaces the old one of the same
// scenario and contender. It also drops all results of another size, except huge
// ones.
func WriteDocs(dir string, m Measurement) error {
	old, err := readData(filepath.Join(dir, dataFile))
	if err != nil {
		return err
	}
	m.Results = merge(old.Results, m.Results)
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	files, err := documents(dir, m)
	if err != nil {
		return err
	}
	files[dataFile] = string(data) + "\n"
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// documents returns, by file name, the documents in dir as they are with these
// measurements.
func documents(dir string, m Measurement) (map[string]string, error) {
	page, err := page(dir, m)
	if err != nil {
		return nil, err
	}
	files := map[string]string{pageFile: page}
	for _, p := range plotted {
		plot, err := Plot(p.Figure, m.Results)
		if err != nil {
			return nil, err
		}
		if plot != "" {
			files[p.file] = plot
		}
	}
	return files, nil
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

// page returns the page with what was measured between its marks.
func page(dir string, m Measurement) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, pageFile))
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

// measured is what the benchmark says on the page: the ratios at a glance, what the
// scenarios are, and the plots.
func measured(m Measurement) string {
	var out strings.Builder
	out.WriteString(Glance(m.Results) + eventsNote(m.Results))
	out.WriteString("\nMachine: " + m.Machine + ". The scenarios:\n\n" + ScenarioList(m.Results))
	out.WriteString("\n")
	for _, p := range plotted {
		fmt.Fprintf(&out, "![%s](%s)\n", textOf(p.Figure).title, p.file)
	}
	return out.String()
}

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
