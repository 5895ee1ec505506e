package release

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"jobpolicy.dev/tools/internal/ociimage"
)

// playgroundArchive holds the folder that make playground builds.
const playgroundArchive = "jobpolicy-playground.tar.gz"

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
	files, err := filesOf(built, "jobpolicy-playground")
	if err != nil {
		return err
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
