package ociimage

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"jobpolicy.dev/tools/internal/licenses"
)

// Compile builds the program of that name for the platform and returns it. It is linked
// without C, and so statically on Linux.
//
// The workspace is off, so that exactly the versions in services/go.mod are built;
// and so is every setting of the caller's that would change the result.
func (s Source) Compile(ctx context.Context, name string, platform v1.Platform) ([]byte, error) {
	dir, err := os.MkdirTemp("", "jobpolicy-image-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, name)
	const variables = "jobpolicy.dev/services/internal/buildinfo"
	ldflags := fmt.Sprintf("-s -w -buildid= -X %s.version=%s -X %s.commit=%s", variables, s.Version, variables, s.Revision)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", ldflags, "-o", out, "./cmd/"+name)
	cmd.Dir = filepath.Join(s.Dir, "services")
	cmd.Env = append(os.Environ(), s.env(platform)...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build %s for %s: %w\n%s", name, platform, err, text)
	}
	return os.ReadFile(out)
}

// env is what the go command gets in its environment to build for the platform.
func (s Source) env(platform v1.Platform) []string {
	return append([]string{
		"GOOS=" + platform.OS, "GOARCH=" + platform.Architecture, "GOAMD64=v1", "GOARM64=v8.0",
		"CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly", "GOEXPERIMENT=", "GOFIPS140=off", "GODEBUG=",
	}, s.Env...)
}

// Licenses are the license texts of what the program of that name links on the platform.
func (s Source) Licenses(ctx context.Context, name string, platform v1.Platform) ([]licenses.Text, error) {
	texts, err := licenses.Of(ctx, s.Dir, "services", s.env(platform), "./cmd/"+name)
	if err != nil {
		return nil, fmt.Errorf("licenses of %s for %s: %w", name, platform, err)
	}
	return texts, nil
}
