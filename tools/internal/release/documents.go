package release

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"jobpolicy.dev/tools/internal/tarfile"
)

// modes are the folders of deploy/kubernetes that each make one manifest.
var modes = []string{"coexist", "replace", "embedded", "embedded-replace", "shadow"}

// documents writes the chart, the manifests and the notes.
func (r Release) documents(clone string, when time.Time) error {
	chart := "jobpolicy-" + strings.TrimPrefix(r.Version, "v") + ".tgz"
	if err := packChart(filepath.Join(clone, chartDir), filepath.Join(r.Out, chart), when); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(r.Out, "manifests"), 0o755); err != nil {
		return err
	}
	for _, mode := range modes {
		if err := r.manifest(clone, mode); err != nil {
			return err
		}
	}
	notes, err := r.notes(clone)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.Out, "NOTES.md"), []byte("# jobpolicy "+r.Version+"\n\n"+notes), 0o644)
}

// manifest writes the objects of a mode, with their namespace, as one file.
func (r Release) manifest(clone, mode string) error {
	folders := filepath.Join(clone, "deploy/kubernetes")
	namespace := filepath.Join(folders, mode, "namespace.yaml")
	if _, err := os.Stat(namespace); err != nil { // It shares the others' namespace.
		namespace = filepath.Join(folders, "namespace/namespace.yaml")
	}
	var parts []string
	for _, name := range []string{namespace, filepath.Join(folders, mode, "jobpolicy.yaml")} {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		parts = append(parts, string(data))
	}
	text := strings.Join(parts, "---\n")
	if want := "image: " + r.Repository + "/jobpolicy-executor:" + r.Version + "\n"; !strings.Contains(text, want) {
		return fmt.Errorf("%s: the manifest has no line %q", mode, want)
	}
	return os.WriteFile(filepath.Join(r.Out, "manifests", mode+".yaml"), []byte(text), 0o644)
}

// packChart packs a chart as helm package does, but gives every file the same time:
// the same chart is the same archive.
func packChart(dir, file string, when time.Time) error {
	files, err := tarfile.Below(dir, "jobpolicy")
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f tarfile.File) bool { return f.Name == "jobpolicy/.helmignore" })
	packed, err := pack(files, when)
	if err != nil {
		return err
	}
	return os.WriteFile(file, packed, 0o644)
}

// writeSums writes SHA256SUMS, which sha256sum --check reads, for every file in dir.
func writeSums(dir string) error {
	files, err := tarfile.Below(dir, "")
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, f := range files {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(f.Data), f.Name)
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums.String()), 0o644)
}
