package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"go.yaml.in/yaml/v3"

	"jobpolicy.dev/tools/internal/ociimage"
)

// A krewPlugin is what krew reads of a manifest.
type krewPlugin struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name string `yaml:"name"`
	} `yaml:"metadata"`
	Spec struct {
		Version          string `yaml:"version"`
		Homepage         string `yaml:"homepage"`
		ShortDescription string `yaml:"shortDescription"`
		Description      string `yaml:"description"`
		Platforms        []struct {
			Selector struct {
				MatchLabels map[string]string `yaml:"matchLabels"`
			} `yaml:"selector"`
			URI    string `yaml:"uri"`
			SHA256 string `yaml:"sha256"`
			Bin    string `yaml:"bin"`
		} `yaml:"platforms"`
	} `yaml:"spec"`
}

func readKrew(t *testing.T, data []byte) krewPlugin {
	t.Helper()
	var p krewPlugin
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&p); err != nil {
		t.Fatal(err)
	}
	if p.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || p.Kind != "Plugin" || p.Metadata.Name != "jobpolicy" || p.Spec.ShortDescription == "" {
		t.Errorf("no manifest of krew: %+v", p)
	}
	return p
}

// The manifest has an entry for each platform that the plugin is made for.
func TestKrewManifest(t *testing.T) {
	var archives []pluginArchive
	for _, p := range PluginPlatforms() {
		archives = append(archives, pluginArchive{p.OS, p.Architecture, "https://example.com/" + p.OS + p.Architecture, strings.Repeat("a", 64)})
	}
	manifest, err := krewManifest("v1.2.3", archives)
	if err != nil {
		t.Fatal(err)
	}
	p := readKrew(t, manifest)
	var got []string
	for _, platform := range p.Spec.Platforms {
		labels := platform.Selector.MatchLabels
		got = append(got, labels["os"]+"/"+labels["arch"])
		if platform.URI != "https://example.com/"+labels["os"]+labels["arch"] || platform.SHA256 != strings.Repeat("a", 64) || platform.Bin != PluginProgram {
			t.Errorf("entry %+v", platform)
		}
	}
	if want := "linux/amd64 linux/arm64 darwin/amd64 darwin/arm64"; strings.Join(got, " ") != want || p.Spec.Version != "v1.2.3" {
		t.Errorf("version %s, platforms %s; want v1.2.3, %s", p.Spec.Version, got, want)
	}
}

// The archive holds a static program and the license; the manifest has its checksum.
func TestPlugin(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles kubectl jobpolicy: minutes the first time")
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	r := Release{
		Version: "v1.2.3", Out: t.TempDir(), Downloads: "https://example.com/releases/",
		PluginPlatforms: []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}},
	}
	source := ociimage.Source{Dir: root, Version: r.Version, Revision: "abc", Time: time.Unix(1_700_000_000, 0)}
	if err := r.plugin(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	checkPlugin(t, r)
}

func checkPlugin(t *testing.T, r Release) {
	manifest, err := os.ReadFile(filepath.Join(r.Out, "plugin", "jobpolicy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p := readKrew(t, manifest)
	if len(p.Spec.Platforms) != 1 {
		t.Fatalf("platforms: %+v", p.Spec.Platforms)
	}
	entry := p.Spec.Platforms[0]
	name := PluginProgram + "_linux_" + runtime.GOARCH + ".tar.gz"
	if want := strings.TrimSuffix(r.Downloads, "/") + "/" + r.Version + "/" + name; entry.URI != want {
		t.Errorf("uri %s, want %s", entry.URI, want)
	}
	packed, err := os.ReadFile(filepath.Join(r.Out, "plugin", name))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(packed)); got != entry.SHA256 {
		t.Errorf("the archive has sha256 %s, the manifest %s", got, entry.SHA256)
	}
	files := unpack(t, packed)
	checkLicenses(t, files, "", "k8s.io/client-go@v", "github.com/spf13/cobra@v", "google.golang.org/grpc@v")
	program, err := elf.NewFile(bytes.NewReader(files[entry.Bin]))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
			t.Errorf("%s is not static: it has a program header %s", entry.Bin, part.Type)
		}
	}
}

// checkLicenses finds the license of the repository, and texts of each module whose name and
// version begin so.
func checkLicenses(t *testing.T, files map[string][]byte, folder string, modules ...string) {
	t.Helper()
	for _, name := range append(modules, "stdlib@", "jobpolicy.dev/LICENSE", "../LICENSE") {
		begin, found := path.Join(folder, "LICENSES", name), false
		for file, text := range files {
			found = found || (strings.HasPrefix(file, begin) && len(text) > 0)
		}
		if !found {
			t.Errorf("no file %s…; files: %d", begin, len(files))
		}
	}
}

func unpack(t *testing.T, packed []byte) map[string][]byte {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(unzipped); ; {
		header, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}
