package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	gomod "golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
	"golang.org/x/tools/txtar"
)

// serveModule makes the versions of a module, which holds one empty package, available from a proxy directory.
func serveModule(t *testing.T, proxy, path string, versions ...string) {
	t.Helper()
	source := t.TempDir()
	goMod := "module " + path + "\n\ngo 1.26.0\n"
	writeFile(t, filepath.Join(source, "go.mod"), goMod)
	writeFile(t, filepath.Join(source, "library.go"), "package library\n")
	at := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	for _, v := range versions {
		var archive bytes.Buffer
		if err := modzip.CreateFromDir(&archive, gomod.Version{Path: path, Version: v}, source); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(at, v+".info"), `{"Version":"`+v+`"}`)
		writeFile(t, filepath.Join(at, v+".mod"), goMod)
		writeFile(t, filepath.Join(at, v+".zip"), archive.String())
	}
}

func writeFile(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// useProxy lets the go command see the modules of the proxy directory, and no others.
func useProxy(t *testing.T, proxy string) {
	t.Helper()
	t.Setenv("GOPROXY", "file://"+filepath.ToSlash(proxy))
	t.Setenv("GONOSUMDB", "*")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw -mod=mod")
}

func TestAlignTakesTheNewestVersionThatAModuleTakes(t *testing.T) {
	proxy := t.TempDir()
	serveModule(t, proxy, "example.com/library", "v1.0.0", "v1.1.0", "v1.2.0")
	useProxy(t, proxy)
	root := t.TempDir()
	writeFile(t, filepath.Join(root, "go.work"), "go 1.26.0\n\nuse (\n\t./engine\n\t./services\n)\n")
	for dir, version := range map[string]string{"engine": "v1.0.0", "services": "v1.1.0"} {
		writeFile(t, filepath.Join(root, dir, "go.mod"),
			"module jobpolicy.dev/"+dir+"\n\ngo 1.26.0\n\nrequire example.com/library "+version+"\n")
		writeFile(t, filepath.Join(root, dir, "a.go"), "package "+dir+"\n\nimport _ \"example.com/library\"\n")
	}

	if status, stdout, stderr := checkrules(root, "-align", "versions"); status != 0 {
		t.Fatalf("status %d, want 0\n%s%s", status, stdout, stderr)
	}
	for _, dir := range []string{"engine", "services"} {
		m, err := readModule(root, dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.mod.Require[0].Mod.Version; got != "v1.1.0" {
			t.Errorf("%s takes %s, want v1.1.0: the newest that a module takes, not the newest there is", dir, got)
		}
	}
}

func TestAlignReportsWhatTheGoCommandRefuses(t *testing.T) {
	useProxy(t, t.TempDir())
	lags := txtar.File{
		Name: "executor/go.mod",
		Data: []byte("module jobpolicy.dev/executor\n\ngo 1.26.0\n\nrequire google.golang.org/protobuf v1.36.9\n"),
	}
	status, _, stderr := checkrules(writeWorkspace(t, lags), "-align", "versions")
	if status != 2 || stderr == "" {
		t.Errorf("status %d, stderr %q, want status 2 and the go command's reason", status, stderr)
	}
}
