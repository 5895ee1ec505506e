package ociimage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// WriteAll makes the images of all services in the folder out, and tells w the name
// and digest of each. The file images.txt lists the same.
func (s Source) WriteAll(ctx context.Context, out, repository string, platforms []v1.Platform, w io.Writer) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var list bytes.Buffer
	for _, p := range Programs() {
		ref, err := s.Reference(repository, p)
		if err != nil {
			return err
		}
		built, err := s.Build(ctx, p, platforms)
		if err != nil {
			return err
		}
		digest, err := built.Index.Digest()
		if err != nil {
			return err
		}
		if err := built.Write(out, ref); err != nil {
			return err
		}
		fmt.Fprintf(io.MultiWriter(w, &list), "%s@%s\n", ref.Name(), digest)
	}
	return os.WriteFile(filepath.Join(out, "images.txt"), list.Bytes(), 0o644)
}
