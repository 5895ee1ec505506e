// Package executables finds the programs that tests start as processes.
package executables

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"jobpolicy.dev/deploy/local/must"
)

// Dir returns the directory of the executables: JOBPOLICY_BIN_DIR, or bin/ of this
// repository after building them, once a process.
var Dir = sync.OnceValues(dir)

func dir() (string, error) {
	if dir := os.Getenv("JOBPOLICY_BIN_DIR"); dir != "" {
		return dir, nil
	}
	root, err := Repository()
	if err != nil {
		return "", err
	}
	build := exec.Command("bash", filepath.Join(root, "deploy/local/build.sh"))
	build.Dir, build.Stdout, build.Stderr = root, os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("build the executables: %w", err)
	}
	return filepath.Join(root, "bin"), nil
}

// MustDir is Dir for a test, which fails without the executables.
func MustDir(t testing.TB) string {
	t.Helper()
	dir, err := Dir()
	must.Succeed(t, err)
	return dir
}

// Repository is the directory above that holds go.work.
func Repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.work in this directory or above")
		}
		dir = filepath.Dir(dir)
	}
}
