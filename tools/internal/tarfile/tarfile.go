// Package tarfile writes tar archives that are the same whenever their files are.
package tarfile

import (
	"archive/tar"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// A File is a file of an archive; a folder's name ends with a slash.
type File struct {
	Name string
	Mode int64
	Data []byte
}

// Write writes an archive of the files in their order. All have the same time and belong to root.
func Write(out io.Writer, when time.Time, files []File) error {
	w := tar.NewWriter(out)
	for _, f := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.Name, Mode: f.Mode, Size: int64(len(f.Data)), ModTime: when, Format: tar.FormatUSTAR,
		}
		if strings.HasSuffix(f.Name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(f.Data); err != nil {
			return err
		}
	}
	return w.Close()
}

// Below reads the files below a folder, as those of the folder into and in the order of their paths.
func Below(dir, into string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(file)
		files = append(files, File{path.Join(into, filepath.ToSlash(name)), 0o644, data})
		return err
	})
	return files, err
}
