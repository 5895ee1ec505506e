package ociimage

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
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
func archive(folder string) (err error) {
	file, err := os.Create(folder + ".tar")
	if err != nil {
		return err
	}
	defer func() {
		if closed := file.Close(); err == nil {
			err = closed
		}
	}()
	w := tar.NewWriter(file)
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		inside, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		return addFile(w, path, filepath.ToSlash(inside))
	})
	if err != nil {
		return err
	}
	return w.Close()
}

func addFile(w *tar.Writer, path, as string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Name: as, Mode: 0o644, Size: info.Size(), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(w, file)
	return err
}
