package ociimage

import (
	"bytes"
	"context"
	"debug/elf"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

func TestSameSourceSameDigest(t *testing.T) {
	first, second := smallSource(t), smallSource(t)
	for _, p := range Programs() {
		want := digest(t, first, p)
		if got := digest(t, second, p); got != want {
			t.Errorf("%s: digest %s in one folder and %s in another", p.Name, want, got)
		}
	}
}

func TestAnotherCommitAnotherDigest(t *testing.T) {
	first := smallSource(t)
	second := first
	second.Revision = strings.Repeat("f", 40)
	p := Programs()[0]
	if got := digest(t, second, p); got == digest(t, first, p) {
		t.Errorf("digest %s for two commits", got)
	}
}

func digest(t *testing.T, s Source, p Program) v1.Hash {
	t.Helper()
	built, err := s.Build(t.Context(), p, DefaultPlatforms())
	if err != nil {
		t.Fatal(err)
	}
	h, err := built.Index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// What the go command would take from the machine it runs on changes nothing.
func TestSettingsOfTheMachineDoNotMatter(t *testing.T) {
	s := smallSource(t)
	p := Programs()[0]
	want := digest(t, s, p)
	t.Setenv("GOFLAGS", "-tags=other -buildvcs=true")
	t.Setenv("GOAMD64", "v3")
	t.Setenv("CGO_ENABLED", "1")
	if got := digest(t, s, p); got != want {
		t.Errorf("digest %s, with other settings %s", want, got)
	}
}

func TestImageConfiguration(t *testing.T) {
	s := smallSource(t)
	p := Programs()[0]
	built, err := s.Build(t.Context(), p, DefaultPlatforms())
	if err != nil {
		t.Fatal(err)
	}
	images := runnable(t, built.Index)
	if len(images) != 2 {
		t.Fatalf("%d images to run, want one for each of 2 platforms", len(images))
	}
	for platform, img := range images {
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if got := config.OS + "/" + config.Architecture; got != platform {
			t.Errorf("%s: the configuration is for %s", platform, got)
		}
		if config.Config.User != "65532:65532" || !cmp.Equal(config.Config.Entrypoint, []string{"/jobpolicy-engine"}) {
			t.Errorf("%s: user %q, entry point %q", platform, config.Config.User, config.Config.Entrypoint)
		}
		manifest, err := img.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			"org.opencontainers.image.title":         p.Title,
			"org.opencontainers.image.description":   p.Description,
			"org.opencontainers.image.version":       "v1.2.3",
			"org.opencontainers.image.revision":      commit,
			"org.opencontainers.image.created":       "2026-01-02T03:04:05Z",
			"org.opencontainers.image.source":        "https://jobpolicy.dev",
			"org.opencontainers.image.url":           "https://jobpolicy.dev",
			"org.opencontainers.image.documentation": "https://jobpolicy.dev",
			"org.opencontainers.image.licenses":      "Apache-2.0",
		}
		if diff := cmp.Diff(want, config.Config.Labels); diff != "" {
			t.Errorf("%s: labels (-want +got):\n%s", platform, diff)
		}
		if diff := cmp.Diff(want, manifest.Annotations); diff != "" {
			t.Errorf("%s: annotations (-want +got):\n%s", platform, diff)
		}
	}
}

// runnable are the images of the index by platform, without the artifacts.
func runnable(t *testing.T, index v1.ImageIndex) map[string]v1.Image {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]v1.Image{}
	for _, desc := range manifest.Manifests {
		if desc.ArtifactType != "" {
			continue
		}
		img, err := index.Image(desc.Digest)
		if err != nil {
			t.Fatal(err)
		}
		images[desc.Platform.String()] = img
	}
	return images
}

// The files of the images are those that a program needs which stands alone.
func TestImageFiles(t *testing.T) {
	built, err := smallSource(t).Build(t.Context(), Programs()[1], DefaultPlatforms())
	if err != nil {
		t.Fatal(err)
	}
	machines := map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64}
	for platform, img := range runnable(t, built.Index) {
		dir := unpack(t, img)
		var names []string
		for _, pattern := range []string{"*", "etc/*", "etc/ssl/certs/*", "licenses/*/*", "licenses/golang.org/x/crypto/x509roots/fallback@*/*"} {
			matches, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range matches {
				names = append(names, strings.TrimPrefix(m, dir))
			}
		}
		standard := "/licenses/stdlib@" + strings.TrimPrefix(runtime.Version(), "go")
		want := []string{
			"/etc", "/jobpolicy-executor", "/licenses", "/etc/group", "/etc/passwd", "/etc/ssl", "/etc/ssl/certs/ca-certificates.crt",
			"/licenses/golang.org/x", "/licenses/jobpolicy.dev/LICENSE", standard + "/LICENSE", standard + "/PATENTS",
			"/licenses/golang.org/x/crypto/x509roots/fallback@v0.1.0/LICENSE",
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%s: files (-want +got):\n%s", platform, diff)
		}
		program, err := elf.Open(filepath.Join(dir, "jobpolicy-executor"))
		if err != nil {
			t.Fatal(err)
		}
		if program.Machine != machines[platform] || program.Section(".interp") != nil {
			t.Errorf("%s: the program is for %s, or needs a loader; want a static one for %s", platform, program.Machine, machines[platform])
		}
		program.Close()
	}
}

// unpack writes the files of an image to a folder.
func unpack(t *testing.T, img v1.Image) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("tar", "-x", "-C", dir)
	files := mutate.Extract(img)
	defer files.Close()
	cmd.Stdin = files
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("unpack: %v\n%s", err, out)
	}
	return dir
}

func TestArchiveIsTheLayoutAndNamesTheImage(t *testing.T) {
	s, dir := smallSource(t), t.TempDir()
	var told bytes.Buffer
	if err := s.WriteAll(t.Context(), dir, "registry.example.com/team/", DefaultPlatforms()[:1], &told); err != nil {
		t.Fatal(err)
	}
	unpacked := t.TempDir()
	if out, err := exec.Command("tar", "-x", "-C", unpacked, "-f", filepath.Join(dir, "jobpolicy-engine.tar")).CombinedOutput(); err != nil {
		t.Fatalf("unpack: %v\n%s", err, out)
	}
	if out, err := exec.Command("diff", "-r", unpacked, filepath.Join(dir, "jobpolicy-engine")).CombinedOutput(); err != nil {
		t.Errorf("the archive differs from the layout: %v\n%s", err, out)
	}
	index, err := layout.ImageIndexFromPath(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 {
		t.Fatalf("the layout has %d entries, want 1: crane push takes no other", len(manifest.Manifests))
	}
	want := map[string]string{
		"io.containerd.image.name":          "registry.example.com/team/jobpolicy-engine:v1.2.3",
		"org.opencontainers.image.ref.name": "v1.2.3",
	}
	if diff := cmp.Diff(want, manifest.Manifests[0].Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	list, err := os.ReadFile(filepath.Join(dir, "images.txt"))
	if err != nil {
		t.Fatal(err)
	}
	line := "registry.example.com/team/jobpolicy-engine:v1.2.3@" + manifest.Manifests[0].Digest.String() + "\n"
	if !strings.HasPrefix(told.String(), line) || string(list) != told.String() {
		t.Errorf("told %q, listed %q; want both to begin with %q", &told, list, line)
	}
}

func TestReferenceOfAnUnreleasedBuild(t *testing.T) {
	ref, err := Source{}.Reference("jobpolicy.dev", Programs()[0])
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := os.ReadFile("../../../deploy/kubernetes/coexist/jobpolicy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(manifests), "image: "+ref.Name()+"\n") {
		t.Errorf("the manifests do not run the image %s", ref.Name())
	}
}

// The real services: they can be built like this, come out the same in two folders,
// run without a file of the machine, and say what they are.
func TestServices(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the services: minutes the first time")
	}
	platform := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	here := realSource()
	elsewhere := here
	elsewhere.Dir = copyOf(t, here.Dir)
	for _, p := range Programs() {
		t.Run(p.Name, func(t *testing.T) {
			binary := compiled(t.Context(), t, here, p, platform)
			if !bytes.Equal(binary, compiled(t.Context(), t, elsewhere, p, platform)) {
				t.Error("the program differs when it is built in another folder")
			}
			path := filepath.Join(t.TempDir(), p.Name)
			if err := os.WriteFile(path, binary, 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(path, "--version")
			cmd.Env = []string{}
			out, err := cmd.CombinedOutput()
			want := p.Name + " v1.2.3 (commit " + commit + ", " + runtime.Version() + ", linux/" + runtime.GOARCH + ")\n"
			if err != nil || string(out) != want {
				t.Errorf("--version: %q, %v; want %q", out, err, want)
			}
		})
	}
}

func compiled(ctx context.Context, t *testing.T, s Source, p Program, platform v1.Platform) []byte {
	t.Helper()
	binary, err := s.Compile(ctx, p.Name, platform)
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// copyOf copies what git knows of the modules that the services are built from.
func copyOf(t *testing.T, root string) string {
	t.Helper()
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "proto", "engine", "executor", "services")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		copyFile(t, filepath.Join(root, name), filepath.Join(dir, name))
	}
	return dir
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if os.IsNotExist(err) {
		return // removed, but not yet in a commit
	}
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
