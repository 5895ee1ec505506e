package ociimage

import (
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"jobpolicy.dev/tools/internal/licenses"
	"jobpolicy.dev/tools/internal/tarfile"
)

// newImage is the image of a program for one platform.
func (s Source) newImage(p Program, platform v1.Platform, binary []byte, texts []licenses.Text) (v1.Image, error) {
	config := &v1.ConfigFile{
		OS:           platform.OS,
		Architecture: platform.Architecture,
		Variant:      platform.Variant,
		Created:      v1.Time{Time: s.Time},
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User:       user + ":" + user,
			Entrypoint: []string{"/" + p.Name},
			WorkingDir: "/",
			Labels:     s.facts(p),
		},
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.ConfigFile(base, config)
	if err != nil {
		return nil, err
	}
	for _, l := range []struct {
		entries []tarfile.File
		comment string
	}{
		{files(), "user nonroot, certificate authorities"},
		{licenseFiles(texts), "license texts"},
		{[]tarfile.File{{Name: p.Name, Mode: 0o755, Data: binary}}, p.Name + " " + s.version()},
	} {
		layer, err := newLayer(l.entries)
		if err != nil {
			return nil, err
		}
		history := v1.History{Created: v1.Time{Time: s.Time}, CreatedBy: "make images", Comment: l.comment}
		if img, err = mutate.Append(img, mutate.Addendum{Layer: layer, History: history}); err != nil {
			return nil, err
		}
	}
	annotated, ok := mutate.Annotations(img, s.facts(p)).(v1.Image)
	if !ok {
		return nil, fmt.Errorf("image of %s: annotating it gave no image", p.Name)
	}
	return container{annotated}, nil
}

// container is an image to run. Without it, the library would give its entry in the
// index the type of its configuration as the type of an artifact.
type container struct{ v1.Image }

// ArtifactType says that an image to run is no artifact.
func (container) ArtifactType() (string, error) { return "", nil }

// facts are the labels and annotations of an image, by the names that the OCI image
// specification predefines.
func (s Source) facts(p Program) map[string]string {
	const prefix = "org.opencontainers.image."
	return map[string]string{
		prefix + "title":         p.Title,
		prefix + "description":   p.Description,
		prefix + "version":       s.version(),
		prefix + "revision":      s.Revision,
		prefix + "created":       s.Time.Format(time.RFC3339),
		prefix + "source":        homepage,
		prefix + "url":           homepage,
		prefix + "documentation": homepage,
		prefix + "licenses":      license,
	}
}
