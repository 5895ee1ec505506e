package ociimage

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// smallSource is a repository whose services do nothing but say what they are. They
// are built as the real ones are, in a second.
func smallSource(t *testing.T) Source {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/repository.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range archive.Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Source{Dir: dir, Version: "v1.2.3", Revision: commit, Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

// realSource is the repository that this test stands in.
func realSource() Source {
	return Source{Dir: "../../..", Version: "v1.2.3", Revision: commit, Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}
