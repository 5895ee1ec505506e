package gomodules

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"jobpolicy.dev/tools/internal/checkout"
)

// version is one that nobody will release.
const version = "v0.0.1-consumers"

// folder has what all tests share.
var folder string

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "gomodules"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// published packs the repository that this test stands in, as it is, without a commit. Tests share it: most of the time goes
// into the module cache, which holds all that our modules require.
func published(t *testing.T) *Proxy {
	t.Helper()
	proxy, err := publish()
	if err != nil {
		t.Fatal(err)
	}
	return proxy
}

var publish = sync.OnceValues(func() (*Proxy, error) {
	root := filepath.Join(folder, "repository")
	if err := copyRepository(root); err != nil {
		return nil, err
	}
	if _, err := checkout.Git(context.Background(), root, "init", "--quiet"); err != nil {
		return nil, err
	}
	proxy := &Proxy{Dir: filepath.Join(folder, "proxy"), Cache: filepath.Join(folder, "cache"), Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	return proxy, Pin(context.Background(), root, version, proxy)
})

// copyRepository copies every file that git knows or would add.
func copyRepository(to string) error {
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	list := exec.Command("bash", "-euo", "pipefail", "-c",
		`git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' f; do [[ ! -e $f ]] || printf '%s\0' "$f"; done | tar -c --null -T - | tar -x -C "$1"`,
		"copy", to)
	list.Dir = "../../.."
	if out, err := list.CombinedOutput(); err != nil {
		return fmt.Errorf("copy the repository: %w\n%s", err, out)
	}
	return nil
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	if _, err := checkout.Git(t.Context(), dir, args...); err != nil {
		t.Fatal(err)
	}
}

// The archive of each module holds the license.
func TestModulesHoldTheLicense(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "LICENSE"), "the license")
	write(t, filepath.Join(root, "go.work"), "go 1.26.0\n")
	for _, dir := range Published {
		write(t, filepath.Join(root, dir, "go.mod"), "module "+Path(dir)+"\n\ngo 1.26.0\n")
	}
	git(t, root, "init", "--quiet")
	proxy := &Proxy{Dir: t.TempDir(), Cache: t.TempDir()}
	if err := Pin(t.Context(), root, version, proxy); err != nil {
		t.Fatal(err)
	}
	for _, dir := range Published {
		archive, err := zip.OpenReader(filepath.Join(proxy.Dir, Path(dir), "@v", version+".zip"))
		if err != nil {
			t.Fatal(err)
		}
		file, err := archive.Open(Path(dir) + "@" + version + "/LICENSE")
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		if text, err := io.ReadAll(file); err != nil || string(text) != "the license" {
			t.Errorf("%s: license %q, error %v", dir, text, err)
		}
	}
}

// A module outside that requires one of ours at a version, and replaces nothing, gets
// it, builds and decides.
func TestConsumers(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles client-go: minutes the first time")
	}
	proxy := published(t)
	cases := map[string]struct {
		get  []string
		file string
		from string
		want string
	}{
		"the contract alone": {
			get: []string{"proto"}, file: "main.go", from: "testdata/contract.go", want: "jobpolicy.v1.PolicyService",
		},
		"the engine alone": {
			get: []string{"engine"}, file: "main.go", from: "testdata/engine.go", want: "create 2",
		},
		"the executor and the engine": {
			get: []string{"executor", "engine"}, file: "example_test.go", from: "../../../test/documents/calling/example_test.go", want: "ok",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "go.mod"), "module example.com/consumer\n\ngo 1.26.0\n")
			source, err := os.ReadFile(tc.from)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, tc.file), string(source))
			for _, module := range tc.get {
				run(t, proxy, dir, "go", "get", Path(module)+"@"+version)
			}
			run(t, proxy, dir, "go", "mod", "tidy")
			action := []string{"go", "run", "-trimpath", "."}
			if strings.HasSuffix(tc.file, "_test.go") {
				action = []string{"go", "test", "-trimpath", "."}
			}
			if out := run(t, proxy, dir, action...); !strings.Contains(out, tc.want) {
				t.Errorf("it printed %q, want %q in it", out, tc.want)
			}
			mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(mod, []byte("replace")) || !bytes.Contains(mod, []byte(Path(tc.get[0])+" "+version)) {
				t.Errorf("the consumer's go.mod replaces something, or lacks the version:\n%s", mod)
			}
		})
	}
}

// The programs can be installed by their version, and say it.
func TestInstall(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the services: minutes the first time")
	}
	proxy, bin := published(t), t.TempDir()
	t.Setenv("GOBIN", bin)
	for _, program := range []string{"jobpolicy-engine", "jobpolicy-executor"} {
		run(t, proxy, t.TempDir(), "go", "install", "-trimpath", Path("services")+"/cmd/"+program+"@"+version)
		if out := run(t, proxy, bin, "./"+program, "--version"); !strings.HasPrefix(out, program+" "+version+" (") {
			t.Errorf("%s --version says %q, want %s", program, out, version)
		}
	}
}

func TestPublishedModulesReplaceNothingElse(t *testing.T) {
	cases := map[string]struct {
		mod, want string
	}{
		"ours from the folder beside": {mod: "replace jobpolicy.dev/proto => ../proto\n"},
		"a fork":                      {mod: "replace example.com/a => example.com/b v1.0.0\n", want: "replaces example.com/a"},
		"a fork of one version":       {mod: "replace example.com/a v1.0.0 => example.com/b v1.0.0\n", want: "replaces example.com/a@v1.0.0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "go.mod")
			write(t, file, "module jobpolicy.dev/engine\n\ngo 1.26.0\n\nrequire (\n\tjobpolicy.dev/proto v0.0.0\n\tjobpolicy.dev/stranger v0.5.0\n)\n\n"+tc.mod)
			err := rewrite(file, "v1.2.3", true)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error %v, want %q in it", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := "module jobpolicy.dev/engine\n\ngo 1.26.0\n\nrequire (\n\tjobpolicy.dev/proto v1.2.3\n\tjobpolicy.dev/stranger v0.5.0\n)\n"
			if string(got) != want {
				t.Errorf("go.mod:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// run runs a command in a folder, with modules from the proxy, and returns what it
// prints.
func run(t *testing.T, proxy *Proxy, dir string, command ...string) string {
	t.Helper()
	env, err := proxy.Env(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), env...), "GOFLAGS=-modcacherw")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return string(out)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
