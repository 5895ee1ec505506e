package ociimage

import (
	"context"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"jobpolicy.dev/tools/internal/licenses"
)

// Built is the image of a program for all its platforms.
type Built struct {
	Program Program
	Index   v1.ImageIndex
	// Materials holds the bills of materials by platform, such as linux-amd64.
	Materials map[string][]byte
}

// Build compiles the program for each platform and makes its image.
func (s Source) Build(ctx context.Context, p Program, platforms []v1.Platform) (*Built, error) {
	built := &Built{Program: p, Materials: map[string][]byte{}}
	var images, referrers []mutate.IndexAddendum
	for _, platform := range platforms {
		binary, err := s.Compile(ctx, p.Name, platform)
		if err != nil {
			return nil, err
		}
		texts, err := s.ImageLicenses(ctx, p, platform)
		if err != nil {
			return nil, err
		}
		img, err := s.newImage(p, platform, binary, texts)
		if err != nil {
			return nil, fmt.Errorf("image of %s for %s: %w", p.Name, platform, err)
		}
		materials, err := s.materials(p, binary)
		if err != nil {
			return nil, fmt.Errorf("bill of materials: %w", err)
		}
		referrer, err := s.newReferrer(img, materials)
		if err != nil {
			return nil, fmt.Errorf("attach the bill of materials to %s: %w", p.Name, err)
		}
		built.Materials[platform.OS+"-"+platform.Architecture] = materials
		images = append(images, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &platform}})
		referrers = append(referrers, notToRun(referrer))
	}
	// The first of the index is what tools take that know no platforms.
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), append(images, referrers...)...)
	annotated, ok := mutate.Annotations(index, s.facts(p)).(v1.ImageIndex)
	if !ok {
		return nil, fmt.Errorf("index of %s: annotating it gave no index", p.Name)
	}
	built.Index = annotated
	return built, nil
}

// ImageLicenses are the license texts of all that is in an image: the program, and the
// certificate authorities.
func (s Source) ImageLicenses(ctx context.Context, p Program, platform v1.Platform) ([]licenses.Text, error) {
	linked, err := s.Licenses(ctx, p.Name, platform)
	if err != nil {
		return nil, err
	}
	certificates, err := licenses.Of(ctx, s.Dir, "tools", s.env(platform), authoritiesPackage)
	if err != nil {
		return nil, fmt.Errorf("licenses of the certificate authorities: %w", err)
	}
	return licenses.Join(linked, certificates), nil
}

// notToRun puts an artifact into the index under a platform that no machine has, as
// is the custom: pushing the index pushes it too, and no node takes it for an image.
func notToRun(referrer v1.Image) mutate.IndexAddendum {
	return mutate.IndexAddendum{Add: referrer, Descriptor: v1.Descriptor{
		ArtifactType: spdxMediaType,
		Platform:     &v1.Platform{OS: "unknown", Architecture: "unknown"},
	}}
}
