package release

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"jobpolicy.dev/tools/internal/ociimage"
	"jobpolicy.dev/tools/internal/tarfile"
)

const (
	// PlaygroundProgram is the engine for the browser.
	PlaygroundProgram = "jobpolicy-playground"
	// playgroundArchive holds the folder that make playground builds.
	playgroundFolder  = "jobpolicy-playground"
	playgroundArchive = playgroundFolder + ".tar.gz"
)

// PlaygroundPlatform is what the engine in the playground is built for.
var PlaygroundPlatform = v1.Platform{OS: "js", Architecture: "wasm"}

// playground builds the playground from the source and packs it.
func (r Release) playground(ctx context.Context, source ociimage.Source) error {
	built, err := os.MkdirTemp("", "jobpolicy-playground-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(built)
	build := exec.CommandContext(ctx, filepath.Join(source.Dir, "tools", "playground.sh"), built)
	build.Env = append(append(os.Environ(), source.Env...), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("tools/playground.sh: %w\n%s", err, out)
	}
	files, err := tarfile.Below(built, playgroundFolder)
	if err != nil {
		return err
	}
	licenses, err := licenseFiles(ctx, source, PlaygroundProgram, PlaygroundPlatform)
	if err != nil {
		return err
	}
	for _, file := range licenses {
		file.Name = playgroundFolder + "/" + file.Name
		files = append(files, file)
	}
	packed, err := pack(files, source.Time)
	if err != nil {
		return err
	}
	dir := filepath.Join(r.Out, "playground")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, playgroundArchive), packed, 0o644)
}
