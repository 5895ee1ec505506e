package ociimage

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
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
	cmd.Env = append(os.Environ(),
		"GOOS="+platform.OS, "GOARCH="+platform.Architecture, "GOAMD64=v1", "GOARM64=v8.0",
		"CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly", "GOEXPERIMENT=", "GOFIPS140=off", "GODEBUG=")
	cmd.Env = append(cmd.Env, s.Env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build %s for %s: %w\n%s", name, platform, err, text)
	}
	return os.ReadFile(out)
}
