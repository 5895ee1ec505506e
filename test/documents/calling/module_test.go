package calling

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// The command of docs/calling.md makes a module that can do what the examples do.
func TestAnotherModuleCanCall(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	page := read(t, filepath.Join(root, "docs/calling.md"))
	block := regexp.MustCompile("(?s)```\n(go mod edit .*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("docs/calling.md has no block that begins with go mod edit")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), []byte("module example.com/caller\n\ngo 1.26.0\n"))
	write(t, filepath.Join(dir, "go.sum"), read(t, filepath.Join(root, "test/go.sum"))) // Spares questions to the checksum database.
	for _, example := range []string{"example_test.go", "onepart_test.go"} {
		write(t, filepath.Join(dir, example), read(t, example))
	}
	if err := os.Mkdir(filepath.Join(dir, "third_party"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(root, filepath.Join(dir, "third_party/jobpolicy")); err != nil {
		t.Fatal(err)
	}
	run(t, dir, string(block[1]))
	run(t, dir, "go mod tidy")
	run(t, dir, "go test .")
}

// run runs a command in the folder.
func run(t *testing.T, dir, command string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-c", command)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
