package ociimage

import (
	"encoding/json"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"jobpolicy.dev/tools/internal/spdx"
)

// The media types of a bill of materials that refers to an image.
const (
	spdxMediaType  = "application/spdx+json"
	emptyMediaType = "application/vnd.oci.empty.v1+json"
)

// materials is the bill of materials of a program for one platform.
func (s Source) materials(p Program, binary []byte) ([]byte, error) {
	doc, err := spdx.Program{
		Name:    p.Name,
		Binary:  binary,
		Path:    "/" + p.Name,
		Version: s.version(),
		Ours:    ours,
		License: license,
		Created: s.Time,
		Tool:    "jobpolicy-images-" + s.version(),
	}.Document()
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}

// artifact is a manifest that holds one file. It is pushed and pulled as an image is.
type artifact struct {
	manifest []byte
	layer    v1.Layer
}

// newReferrer makes the artifact that attaches the bill of materials to the image.
func (s Source) newReferrer(img v1.Image, materials []byte) (v1.Image, error) {
	subject, err := partial.Descriptor(img)
	if err != nil {
		return nil, err
	}
	config, err := partial.Descriptor(emptyConfig())
	if err != nil {
		return nil, err
	}
	layer := static.NewLayer(materials, spdxMediaType)
	file, err := partial.Descriptor(layer)
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		ArtifactType:  spdxMediaType,
		Config:        *config,
		Layers:        []v1.Descriptor{*file},
		Subject:       &v1.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size},
		Annotations:   map[string]string{"org.opencontainers.image.created": s.Time.Format(time.RFC3339)},
	})
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(artifact{manifest, layer})
}

// emptyConfig is the configuration of an artifact that needs none.
func emptyConfig() v1.Layer { return static.NewLayer([]byte("{}"), emptyMediaType) }

// MediaType implements partial.CompressedImageCore.
func (a artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// RawManifest implements partial.CompressedImageCore.
func (a artifact) RawManifest() ([]byte, error) { return a.manifest, nil }

// RawConfigFile implements partial.CompressedImageCore.
func (a artifact) RawConfigFile() ([]byte, error) { return []byte("{}"), nil }

// LayerByDigest implements partial.CompressedImageCore.
func (a artifact) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	if config, err := partial.Descriptor(emptyConfig()); err != nil || config.Digest == h {
		return emptyConfig(), err
	}
	return a.layer, nil
}
