package differences_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"jobpolicy.dev/services/differences"
	"jobpolicy.dev/services/internal/testenv"
)

const root = "../.."

// Each row names what shows it, and that exists.
func TestEachRowIsShown(t *testing.T) {
	tests, seen := testNames(t), map[string]bool{}
	for _, r := range differences.Rows() {
		if seen[r.ID] {
			t.Errorf("two rows have the ID %q", r.ID)
		}
		seen[r.ID] = true
		if len(r.ShownBy) == 0 {
			t.Errorf("no test shows row %q", r.ID)
		}
		for _, name := range r.ShownBy {
			if _, err := os.Stat(filepath.Join(root, name)); err != nil && !tests[name] {
				t.Errorf("row %q is shown by %s, which is neither a file, a folder nor a test", r.ID, name)
			}
		}
	}
}

// testNames are the names of all tests of the repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names, test := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, match := range test.FindAllStringSubmatch(string(testenv.ReadFile(t, path)), -1) {
			names[match[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestWhatOnlyOneSideHasIsNamed(t *testing.T) {
	const folder = "test/upstream/schedule"
	if err := differences.CheckTolerated(folder, []string{"clock-changes"}); err != nil {
		t.Error(err)
	}
	testenv.WantError(t, differences.CheckTolerated(folder, nil), `row "clock-changes"`)
	testenv.WantError(t, differences.CheckTolerated(folder, []string{"clock-changes", "other"}), `tolerates "other"`)
}
