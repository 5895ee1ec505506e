package world

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"jobpolicy.dev/deploy/local/must"
)

var (
	mutantsFlag     = flag.String("world.mutants", "", "plant the defects of testdata/mutants.txt whose names match, one at a time, and search for each in worlds")
	mutantSeedsFlag = flag.Uint64("world.mutant-seeds", 20_000, "largest number of worlds in which a mutant is searched")
)

// A mutant is a defect to plant: usually one edit. It has more if another check would hide
// the defect.
type mutant struct {
	name, breaks string
	edits        []edit
}

// An edit replaces a text that occurs once in the file.
type edit struct{ file, old, planted string }

// root is where the mutants' files are.
const root = "../../.."

// readMutants reads testdata/mutants.txt.
func readMutants(t *testing.T) []mutant {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "mutants.txt"))
	must.Succeed(t, err)
	head := regexp.MustCompile(`^([^\n]+)\nbreaks ([^\n]+)\n`)
	change := regexp.MustCompile(`(?ms)^file ([^\n]+)\n<<<\n(.*?)\n===\n(.*?)\n>>>\n`)
	var mutants []mutant
	for _, text := range strings.Split(string(data), "\nmutant ")[1:] {
		h, changes := head.FindStringSubmatch(text), change.FindAllStringSubmatch(text, -1)
		if h == nil || len(changes) == 0 || len(changes) != strings.Count(text, "\n<<<\n") {
			t.Fatalf("this mutant is not well written:\n%s", text)
		}
		m := mutant{name: h[1], breaks: h[2]}
		for _, c := range changes {
			m.edits = append(m.edits, edit{file: c[1], old: c[2], planted: c[3]})
		}
		mutants = append(mutants, m)
	}
	return mutants
}

// apply returns the mutant's files with the defect in them.
func (m mutant) apply() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, e := range m.edits {
		source, ok := files[e.file]
		if !ok {
			var err error
			if source, err = os.ReadFile(filepath.Join(root, e.file)); err != nil {
				return nil, err
			}
		}
		if n := bytes.Count(source, []byte(e.old)); n != 1 {
			return nil, fmt.Errorf("its text stands %d times in %s", n, e.file)
		}
		files[e.file] = bytes.Replace(source, []byte(e.old), []byte(e.planted), 1)
	}
	return files, nil
}

// TestMutantsApply finds mutants whose text is no longer in the code.
func TestMutantsApply(t *testing.T) {
	names := map[string]bool{}
	for _, m := range readMutants(t) {
		if _, err := m.apply(); err != nil {
			t.Errorf("mutant %q: %v", m.name, err)
		}
		if names[m.name] {
			t.Errorf("there are two mutants called %q", m.name)
		}
		names[m.name] = true
	}
}

// TestMutants searches for each mutant in worlds. A mutant that is not found shows a gap in
// the worlds or in the judges.
func TestMutants(t *testing.T) {
	if *mutantsFlag == "" {
		t.Skip("make mutants")
	}
	chosen, err := regexp.Compile(*mutantsFlag)
	must.Succeed(t, err)
	var table strings.Builder
	fmt.Fprintf(&table, "%-52s %-12s %8s  %s\n", "mutant", "breaks", "worlds", "found by")
	for _, m := range readMutants(t) {
		if !chosen.MatchString(m.name) {
			continue
		}
		row := m.search(t)
		fmt.Fprintln(os.Stderr, row)
		table.WriteString(row + "\n")
	}
	t.Logf("\n%s", table.String())
}

// search builds the worlds with the mutant in them and plays them until one breaks a
// rule.
func (m mutant) search(t *testing.T) string {
	t.Helper()
	binary, err := m.build(t.TempDir())
	if err != nil {
		t.Errorf("mutant %q: %v", m.name, err)
		return m.name + ": cannot be built"
	}
	total, rule := newTally(), ""
	seeds := &seedRange{next: *fromFlag, end: *fromFlag + *mutantSeedsFlag}
	c := workerPool{binary: binary, workers: *workersFlag, seeds: seeds, args: append(workerArgs(), "-world.until-broken"), tell: func(r report) {
		total.add(r)
		if len(r.Breaches) > 0 && rule == "" {
			rule = fmt.Sprintf("world %d, %s: %s", r.Seed, r.Rule, firstLines(r.Breaches[0]))
			seeds.stop()
		}
	}}
	if err := c.play(t); err != nil {
		t.Errorf("mutant %q: %v", m.name, err)
	}
	if rule == "" {
		t.Errorf("mutant %q survives %d worlds", m.name, total.worlds)
		rule = "NOBODY"
	}
	return fmt.Sprintf("%-52s %-12s %8d  %s", m.name, m.breaks, total.worlds, rule)
}

// build compiles the test binary with the mutant's files in place of the real ones.
func (m mutant) build(dir string) (binary string, err error) {
	files, err := m.apply()
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, source := range files {
		real, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			return "", err
		}
		replace[real] = filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(replace[real], source, 0o644); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o644); err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "world.test")
	out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", list, "-o", binary, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return binary, nil
}
