package nodeimages

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// File is one file of an image: a symbolic link, or one with content.
type File struct {
	// Link is where a symbolic link leads to.
	Link string
	// Content is that of any other file.
	Content []byte
	// Mode holds the permissions.
	Mode fs.FileMode
}

// tree is the files of an image by their paths, without a slash in front.
type tree map[string]File

// newTree has what programs expect of any system.
func newTree() tree {
	t := tree{}
	t.add("/etc/passwd", File{Content: []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"), Mode: 0o644})
	t.add("/etc/group", File{Content: []byte("root:x:0:\nnogroup:x:65534:\n"), Mode: 0o644})
	t.add("/root", File{Mode: fs.ModeDir | 0o700})
	t.add("/tmp", File{Mode: fs.ModeDir | 0o777 | fs.ModeSticky})
	return t
}

func (t tree) add(name string, f File) { t[strings.TrimPrefix(name, "/")] = f }

// addHost adds a file of this machine, under its own path.
func (t tree) addHost(name string) error {
	info, err := os.Lstat(name)
	if err != nil {
		return err
	}
	switch info.Mode().Type() {
	case 0:
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		t.add(name, File{Content: content, Mode: info.Mode().Perm()})
	case fs.ModeSymlink:
		target, err := os.Readlink(name)
		if err != nil {
			return err
		}
		t.add(name, File{Link: target})
	}
	return nil // directories follow from the files in them
}

// archive returns the files as a tar archive.
func (t tree) archive() ([]byte, error) {
	var out bytes.Buffer
	err := t.withDirectories().write(tar.NewWriter(&out))
	return out.Bytes(), err
}

// write writes the files in the order of their paths, so each after the
// directories that it is in, and without times: the same files make the same
// archive.
func (t tree) write(w *tar.Writer) error {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if err := w.WriteHeader(header(name, t[name])); err != nil {
			return err
		}
		if _, err := w.Write(t[name].Content); err != nil {
			return err
		}
	}
	return w.Close()
}

// withDirectories returns the tree with the directories that files are in.
func (t tree) withDirectories() tree {
	all := maps.Clone(t)
	for name := range t {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := all[dir]; !ok {
				all[dir] = File{Mode: fs.ModeDir | 0o755}
			}
		}
	}
	return all
}

func header(name string, f File) *tar.Header {
	h := &tar.Header{Name: name, Mode: int64(f.Mode.Perm()), Size: int64(len(f.Content)), Typeflag: tar.TypeReg}
	if f.Mode&fs.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	switch {
	case f.Link != "":
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, f.Link, 0o777
	case f.Mode.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
	}
	return h
}
