// Package examples holds controllers of one's own that let the engine decide.
package examples

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each example has less than 300 lines of Go, so that it is read in a few minutes.
func TestExamplesAreShort(t *testing.T) {
	const most = 299
	files, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines[filepath.Dir(file)] += bytes.Count(text, []byte("\n"))
	}
	for _, name := range []string{"processes", "training"} {
		if n := lines[name]; n == 0 || n > most {
			t.Errorf("%s has %d lines of Go, want 1 to %d", name, n, most)
		}
	}
}
