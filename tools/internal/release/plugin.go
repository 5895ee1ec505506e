package release

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"jobpolicy.dev/tools/internal/ociimage"
	"jobpolicy.dev/tools/internal/tarfile"
)

// PluginProgram is the plugin of kubectl.
const PluginProgram = "kubectl-jobpolicy"

// PluginPlatforms are the platforms that kubectl jobpolicy is made for.
func PluginPlatforms() []v1.Platform {
	return []v1.Platform{
		{OS: "linux", Architecture: "amd64"},
		{OS: "linux", Architecture: "arm64"},
		{OS: "darwin", Architecture: "amd64"},
		{OS: "darwin", Architecture: "arm64"},
	}
}

// A pluginArchive is the plugin for one platform, as krew downloads it.
type pluginArchive struct {
	OS, Arch string
	URL      string
	SHA256   string
}

// plugin writes the archives of kubectl jobpolicy, and the manifest that krew installs
// it by.
func (r Release) plugin(ctx context.Context, source ociimage.Source) error {
	dir := filepath.Join(r.Out, "plugin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var archives []pluginArchive
	for _, p := range r.PluginPlatforms {
		program, err := source.Compile(ctx, PluginProgram, p)
		if err != nil {
			return err
		}
		licenses, err := licenseFiles(ctx, source, PluginProgram, p)
		if err != nil {
			return err
		}
		packed, err := pack(append([]tarfile.File{{Name: PluginProgram, Mode: 0o755, Data: program}}, licenses...), source.Time)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s_%s_%s.tar.gz", PluginProgram, p.OS, p.Architecture)
		if err := os.WriteFile(filepath.Join(dir, name), packed, 0o644); err != nil {
			return err
		}
		archives = append(archives, pluginArchive{
			OS: p.OS, Arch: p.Architecture, SHA256: fmt.Sprintf("%x", sha256.Sum256(packed)),
			URL: strings.TrimSuffix(r.Downloads, "/") + "/" + r.Version + "/" + name,
		})
	}
	manifest, err := krewManifest(r.Version, archives)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "jobpolicy.yaml"), manifest, 0o644)
}

var krewTemplate = template.Must(template.New("krew").Parse(`apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: jobpolicy
spec:
  version: {{.Version}}
  homepage: https://jobpolicy.dev
  shortDescription: Why a Job is where it is, and what comes next
  description: |
    Says in plain English why a Job or CronJob is where it is, what it waits for
    and until when, and what would change it. Plays Jobs in virtual time, checks
    manifests, and lists the coming runs of a CronJob.

    Works on any cluster with the rights of the user. Only preflight --probe writes:
    it creates a Job and deletes it.
  platforms:
{{- range .Archives}}
  - selector:
      matchLabels:
        os: {{.OS}}
        arch: {{.Arch}}
    uri: {{.URL}}
    sha256: {{.SHA256}}
    bin: kubectl-jobpolicy
{{- end}}
`))

func krewManifest(version string, archives []pluginArchive) ([]byte, error) {
	var out bytes.Buffer
	err := krewTemplate.Execute(&out, struct {
		Version  string
		Archives []pluginArchive
	}{version, archives})
	return out.Bytes(), err
}
