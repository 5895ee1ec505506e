package ociimage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"jobpolicy.dev/tools/internal/tarfile"
)

// Reference is the name of a program's image: in the repository's folder, with the
// version as its tag.
func (s Source) Reference(repository string, p Program) (name.Tag, error) {
	// A version may have a plus sign, a tag must not.
	return name.NewTag(strings.TrimSuffix(repository, "/") + "/" + p.Name + ":" + strings.ReplaceAll(s.version(), "+", "-"))
}

// Write puts the image into dir:
//
//	NAME/                      an OCI image layout, for crane push
//	NAME.tar                   the same as one file, for ctr images import
//	NAME.OS-ARCH.spdx.json     the bills of materials
//
// What was there before under these names is replaced.
func (b *Built) Write(dir string, ref name.Tag) error {
	folder := filepath.Join(dir, b.Program.Name)
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	// containerd takes the first annotation for the name of what it imports; the
	// second is the tag, as skopeo and others read it.
	annotations := layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          ref.Name(),
		"org.opencontainers.image.ref.name": ref.TagStr(),
	})
	if err := path.AppendIndex(b.Index, annotations); err != nil {
		return fmt.Errorf("write %s: %w", folder, err)
	}
	if err := archive(folder); err != nil {
		return fmt.Errorf("write %s.tar: %w", folder, err)
	}
	for platform, materials := range b.Materials {
		if err := os.WriteFile(folder+"."+platform+".spdx.json", materials, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// archive packs the folder into a file beside it, in the order of names.
func archive(folder string) error {
	files, err := tarfile.Below(folder, "")
	if err != nil {
		return err
	}
	out, err := os.Create(folder + ".tar")
	if err != nil {
		return err
	}
	return errors.Join(tarfile.Write(out, time.Unix(0, 0), files), out.Close())
}
