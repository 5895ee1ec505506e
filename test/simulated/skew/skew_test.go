package skew

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"jobpolicy.dev/deploy/local/must"
)

var (
	worlds = flag.Int("skew.worlds", 25, "how many worlds each pair of versions plays")
	from   = flag.String("skew.release", "", "the `commit` or tag to take as the last release")
)

const root = "../../.."

func TestOldEngineWithNewExecutor(t *testing.T) {
	old := lastRelease(t)
	program := buildEngine(t, old)
	play(t, filepath.Join(root, "test"), program)
}

func TestNewEngineWithOldExecutor(t *testing.T) {
	old := lastRelease(t)
	program := buildEngine(t, root)
	letAnotherEngineDecide(t, filepath.Join(old, "test/simulated/world"))
	play(t, filepath.Join(old, "test"), program)
}

// lastRelease returns a folder with the files of the last release.
func lastRelease(t *testing.T) string {
	t.Helper()
	commit := release(t)
	if out, err := git("cat-file", "-e", commit+"^{commit}"); err != nil {
		t.Skipf("NOT RUN: this clone lacks the last release, %s (git fetch --unshallow): %v %s", commit, err, out)
	}
	dir := t.TempDir()
	unpack := exec.Command("bash", "-o", "pipefail", "-c", `git -C "$0" archive "$1" | tar -x -C "$2"`, root, commit, dir)
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("the last release is %s", commit)
	return dir
}

// release is the last tag, or the commit of the file.
func release(t *testing.T) string {
	t.Helper()
	if *from != "" {
		return *from
	}
	if tag, err := git("describe", "--tags", "--abbrev=0", "--match=v[0-9]*"); err == nil {
		return tag
	}
	pinned, err := os.ReadFile("last-release.txt")
	must.Succeed(t, err)
	return strings.TrimSpace(string(pinned))
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", append([]string{"-C", root}, args...)...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// buildEngine builds the engine of a version as a program. A version from before the
// program existed gets its source.
func buildEngine(t *testing.T, tree string) string {
	t.Helper()
	const source = "test/kit/cmd/worldengine/main.go"
	copyUnlessThere(t, filepath.Join(root, source), filepath.Join(tree, source))
	program := filepath.Join(t.TempDir(), "worldengine")
	run(t, filepath.Join(tree, "test"), nil, "go", "build", "-o", program, "./kit/cmd/worldengine")
	return program
}

// letAnotherEngineDecide changes the world of a version from before it could do that.
func letAnotherEngineDecide(t *testing.T, world string) {
	t.Helper()
	if !copyUnlessThere(t, filepath.Join(root, "test/simulated/world/otherengine.go"), filepath.Join(world, "otherengine.go")) {
		return
	}
	file := filepath.Join(world, "decider.go")
	source, err := os.ReadFile(file)
	must.Succeed(t, err)
	text := string(source)
	for call, other := range map[string]string{
		"return engine.DecideJob(":               "return decideJob(",
		"return cronjob.Decide(":                 "return decideCronJob(",
		"return nil, f, toStatus(err)\n":         "return nil, f, statusOf(err)\n",
		`	"jobpolicy.dev/engine/cronjob"` + "\n": "",
	} {
		if strings.Count(text, call) != 1 {
			t.Fatalf("decider.go of the last release has %q %d times, want once", call, strings.Count(text, call))
		}
		text = strings.Replace(text, call, other, 1)
	}
	must.Succeed(t, os.WriteFile(file, []byte(text), 0o600))
}

// copyUnlessThere copies a file, and reports whether it had to.
func copyUnlessThere(t *testing.T, from, to string) bool {
	t.Helper()
	if _, err := os.Stat(to); err == nil {
		return false
	}
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	must.Succeed(t, err)
	return true
}

// play plays the worlds of a version, with the engine of another.
func play(t *testing.T, module, engine string) {
	t.Helper()
	out := run(t, module, []string{"JOBPOLICY_WORLD_ENGINE=" + engine},
		"go", "test", "-count=1", "-v", "./simulated/world", "-run=^TestWorlds$", "-args", fmt.Sprint("-world.seeds=", *worlds))
	if want := fmt.Sprintf("%[1]d of %[1]d worlds", *worlds); !strings.Contains(out, want) {
		t.Errorf("%q is not in what the worlds print:\n%s", want, out)
	}
	t.Log(out)
}

func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
