package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"jobpolicy.dev/tools/internal/checkout"
	"jobpolicy.dev/tools/internal/tarfile"
)

// version is one that nobody will release.
const version = "v0.0.1-rehearsal"

// repository is a clone of this repository, with the files as they are here, one
// commit, and a changelog that announces the version.
func repository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c",
		`git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' f; do [[ ! -e $f ]] || printf '%s\0' "$f"; done | tar -c --null -T - | tar -x -C "$1"`,
		"copy", root)
	cmd.Dir = "../../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("copy the repository: %v\n%s", err, out)
	}
	changelog := filepath.Join(root, "CHANGELOG.md")
	text := read(t, changelog)
	announced := strings.Replace(text, "## Unreleased\n", "## Unreleased\n\n## "+version+" (a rehearsal)\n", 1)
	if announced == text {
		announced = strings.Replace(text, "# Changelog\n", "# Changelog\n\n## "+version+"\n\n- A rehearsal.\n", 1)
	}
	write(t, changelog, announced)
	git(t, root, "init", "--quiet", "--initial-branch=main")
	git(t, root, "config", "user.name", "A Person")
	git(t, root, "config", "user.email", "person@example.com")
	commit(t, root)
	return root
}

func commit(t *testing.T, root string) {
	t.Helper()
	git(t, root, "add", "--all")
	git(t, root, "commit", "--quiet", "-m", "as it is")
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := checkout.Git(t.Context(), dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A whole release, of this repository as it is.
func TestMake(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the services and the chart's tools: minutes the first time")
	}
	root := repository(t)
	var log bytes.Buffer
	r := Release{
		Root: root, Version: version, Out: filepath.Join(t.TempDir(), "out"), Repository: "registry.example.com/team",
		Platforms: []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}}, Log: &log,
		PluginPlatforms: []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}}, Downloads: "https://example.com/releases",
	}
	if err := r.Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	released := git(t, root, "rev-parse", r.Branch())
	t.Run("sums", func(t *testing.T) { checkSums(t, r.Out) })
	t.Run("the commit", func(t *testing.T) { checkCommit(t, root, r.Branch()) })
	t.Run("images", func(t *testing.T) { checkImages(t, r.Out, released) })
	t.Run("kubectl jobpolicy", func(t *testing.T) { checkPlugin(t, r) })
	t.Run("chart", func(t *testing.T) { checkChart(t, filepath.Join(r.Out, "jobpolicy-"+version[1:]+".tgz")) })
	t.Run("what to push", func(t *testing.T) {
		push := read(t, filepath.Join(r.Out, "PUSH.md"))
		for _, want := range append(r.tags(), released, "crane push ", "helm push ", "https://example.com/releases/"+version+"/") {
			if !strings.Contains(push, want) || !strings.Contains(log.String(), want) {
				t.Errorf("PUSH.md or what was printed lacks %q", want)
			}
		}
	})
	t.Run("nothing else", func(t *testing.T) {
		if got := git(t, root, "for-each-ref", "--format=%(refname)"); got != "refs/heads/main\nrefs/heads/"+r.Branch() {
			t.Errorf("refs of the repository: %s", got)
		}
		if got := git(t, root, "status", "--porcelain"); got != "" {
			t.Errorf("changes in the checkout: %s", got)
		}
	})
}

// checkSums checks that every file has its line in SHA256SUMS, and matches it.
func checkSums(t *testing.T, out string) {
	cmd := exec.Command("sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
	cmd.Dir = out
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("sha256sum: %v\n%s", err, text)
	}
	files, err := tarfile.Below(out, "")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	if lines := strings.Count(read(t, filepath.Join(out, "SHA256SUMS")), "\n"); lines != len(names)-1 {
		t.Errorf("SHA256SUMS has %d lines for %d files", lines, len(names)-1)
	}
	for _, want := range []string{
		"NOTES.md", "PUSH.md", "images/images.txt", "images/jobpolicy-engine.tar", "images/jobpolicy-executor/index.json",
		"images/jobpolicy-engine.linux-" + runtime.GOARCH + ".spdx.json", "manifests/coexist.yaml", "manifests/embedded-replace.yaml",
		"modules/jobpolicy.dev/engine/@v/" + version + ".zip",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("the release lacks %s", want)
		}
	}
}

// checkCommit checks the modules as the tags will have them.
func checkCommit(t *testing.T, root, branch string) {
	if parent := git(t, root, "rev-parse", branch+"^"); parent != git(t, root, "rev-parse", "main") {
		t.Errorf("the commit stands on %s, want main", parent)
	}
	for _, dir := range []string{"proto", "engine", "executor", "services"} {
		mod := git(t, root, "show", branch+":"+dir+"/go.mod")
		if strings.Contains(mod, "replace") || strings.Contains(mod, "v0.0.0\n") {
			t.Errorf("%s/go.mod replaces something or requires a placeholder:\n%s", dir, mod)
		}
	}
	if mod := git(t, root, "show", branch+":services/go.mod"); !strings.Contains(mod, "jobpolicy.dev/engine "+version) {
		t.Errorf("services/go.mod does not require the engine's version:\n%s", mod)
	}
}

// checkImages checks that the programs in the images are those of the release: they
// say so, and link our modules at the version and nothing from a folder.
func checkImages(t *testing.T, out, released string) {
	for _, name := range []string{"jobpolicy-engine", "jobpolicy-executor"} {
		program := programOf(t, filepath.Join(out, "images", name), name)
		text, err := exec.Command(program, "--version").Output()
		if want := name + " " + version + " (commit " + released + ", "; err != nil || !strings.HasPrefix(string(text), want) {
			t.Errorf("--version: %q, %v; want it to begin with %q", text, err, want)
		}
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		for _, dep := range info.Deps {
			if strings.HasPrefix(dep.Path, "jobpolicy.dev/") && (dep.Version != version || dep.Replace != nil) {
				t.Errorf("%s links %s %s, replaced by %v; want %s", name, dep.Path, dep.Version, dep.Replace, version)
			}
		}
	}
}

// programOf takes the program out of the first image of a layout.
func programOf(t *testing.T, dir, name string) string {
	t.Helper()
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	index, err := top.ImageIndex(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if list, err = index.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	img, err := index.Image(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	files := mutate.Extract(img)
	defer files.Close()
	r := tar.NewReader(files)
	for {
		header, err := r.Next()
		if err != nil {
			t.Fatalf("no program %s in the image: %v", name, err)
		}
		if strings.TrimPrefix(header.Name, "/") != name {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
}

func checkChart(t *testing.T, file string) {
	packed, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unzipped, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	contents := map[string]string{}
	for r := tar.NewReader(unzipped); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		contents[header.Name] = string(data)
	}
	about := contents["jobpolicy/Chart.yaml"]
	if !strings.Contains(about, "\nversion: "+version[1:]+"\n") || !strings.Contains(about, "\nappVersion: "+version+"\n") {
		t.Errorf("Chart.yaml does not name the version:\n%s", about)
	}
	if !strings.Contains(contents["jobpolicy/values.yaml"], "\n  repository: registry.example.com/team\n") || contents["jobpolicy/templates/engine.yaml"] == "" {
		t.Errorf("the chart lacks the registry or a template; it has %d files", len(contents))
	}
}

// The command checks everything before it makes anything.
func TestTheCommandRunsChecksAndTestsFirst(t *testing.T) {
	cmd := exec.Command("make", "--dry-run", "release", "VERSION=v0.0.1")
	cmd.Dir = "../../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	at := -1
	for _, want := range []string{" -check ", "'make verify'", "'make test'", " -repository "} {
		next := strings.Index(string(out), want)
		if next < at {
			t.Errorf("make release runs no %s in its turn:\n%s", want, out)
		}
		at = next
	}
}

// Whatever forbids a release is said, all at once, and before anything is made.
func TestWhatForbidsARelease(t *testing.T) {
	cases := map[string]struct {
		version string
		spoil   func(t *testing.T, root string)
		want    []string
	}{
		"no version":             {version: "1.2.3", want: []string{"must be like v0.1.0"}},
		"half a version":         {version: "v1.2", want: []string{"must be like v0.1.0"}},
		"another import path":    {version: "v2.0.0", want: []string{"below v2"}},
		"another version's news": {version: "v0.2.0", want: []string{`the section "v0.1.0" comes before`}},
		"a tag and a change": {version: "v0.1.0", spoil: func(t *testing.T, root string) {
			git(t, root, "tag", "engine/v0.1.0")
			write(t, filepath.Join(root, "new"), "x")
		}, want: []string{"changes that are in no commit", "the tag engine/v0.1.0 is there already"}},
		"unreleased news": {version: "v0.1.0", spoil: func(t *testing.T, root string) {
			write(t, filepath.Join(root, "CHANGELOG.md"), "# Changelog\n\n## Unreleased\n\n- More.\n\n## v0.1.0\n\n- Something.\n")
			commit(t, root)
		}, want: []string{"nothing unreleased may be left"}},
		"no news": {version: "v0.1.0", spoil: func(t *testing.T, root string) {
			write(t, filepath.Join(root, "CHANGELOG.md"), "# Changelog\n\n## Unreleased\n")
			commit(t, root)
		}, want: []string{"has no section"}},
		"made before": {version: "v0.1.0", spoil: func(t *testing.T, root string) {
			if err := os.Mkdir(filepath.Join(root, "out"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, want: []string{"is there already: remove it"}},
		"nothing": {version: "v0.1.0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			git(t, root, "init", "--quiet")
			git(t, root, "config", "user.name", "A Person")
			git(t, root, "config", "user.email", "person@example.com")
			write(t, filepath.Join(root, "CHANGELOG.md"), "# Changelog\n\n## Unreleased\n\n## v0.1.0 (2026-01-02)\n\n- Something.\n")
			commit(t, root)
			if tc.spoil != nil {
				tc.spoil(t, root)
			}
			err := Release{Root: root, Version: tc.version, Out: filepath.Join(root, "out")}.Check(t.Context())
			if (err == nil) != (len(tc.want) == 0) {
				t.Fatalf("error %v, want %q", err, tc.want)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
}

func TestNotesAreTheSectionOfTheVersion(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "CHANGELOG.md"), "# Changelog\n\n## Unreleased\n\n## v0.2.0 (2026-01-02)\n\n- New.\n\n## v0.1.0\n\n- Old.\n")
	got, err := Release{Version: "v0.2.0"}.notes(root)
	if err != nil || got != "- New.\n" {
		t.Errorf("notes = %q, %v", got, err)
	}
}
