package ociimage

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/cmd/crane/cmd"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
)

// crane runs the command of that name.
func crane(t *testing.T, args ...string) string {
	t.Helper()
	command := cmd.New("crane", "", nil)
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetArgs(args)
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("crane %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(out.String())
}

// newRegistry starts a registry and returns its address.
func newRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// What crane pushes can be pulled again, whole, and each image leads to its bill of
// materials.
func TestPushAndPull(t *testing.T) {
	s, dir := smallSource(t), t.TempDir()
	if err := s.WriteAll(t.Context(), dir, "jobpolicy.dev", DefaultPlatforms(), io.Discard); err != nil {
		t.Fatal(err)
	}
	repository := newRegistry(t)
	for _, p := range Programs() {
		pushed := crane(t, "push", filepath.Join(dir, p.Name), repository+"/team/"+p.Name+":v1.2.3")
		ref, err := name.NewDigest(pushed)
		if err != nil {
			t.Fatal(err)
		}
		index, err := remote.Index(ref)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(index); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		images := runnable(t, index)
		if len(images) != 2 {
			t.Errorf("%s: %d platforms, want 2", p.Name, len(images))
		}
		for platform, img := range images {
			checkMaterials(t, ref.Context(), p.Name+" "+platform, img)
		}
	}
}

// checkMaterials asks the registry what refers to the image: a valid bill of
// materials of that name.
func checkMaterials(t *testing.T, repository name.Repository, wantName string, img v1.Image) {
	t.Helper()
	h, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	referrers, err := remote.Referrers(repository.Digest(h.String()))
	if err != nil {
		t.Fatal(err)
	}
	list, err := referrers.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Manifests) != 1 {
		t.Fatalf("%s: what refers to it is %+v, want one bill of materials", wantName, list.Manifests)
	}
	artifact, err := remote.Image(repository.Digest(list.Manifests[0].Digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	// This registry lists the type of the configuration in place of the artifact's.
	if manifest, err := artifact.Manifest(); err != nil || manifest.ArtifactType != "application/spdx+json" {
		t.Errorf("%s: what refers to it is of type %q, %v; want application/spdx+json", wantName, manifest.ArtifactType, err)
	}
	layers, err := artifact.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%s: %d layers, %v; want 1", wantName, len(layers), err)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	text, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := spdxjson.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v\n%s", wantName, err, text)
	}
	if err := spdxlib.ValidateDocument(doc); err != nil || doc.DocumentName != wantName {
		t.Errorf("the bill of materials is of %q: %v; want that of %q", doc.DocumentName, err, wantName)
	}
}
