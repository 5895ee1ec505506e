package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"jobpolicy.dev/tools/internal/ociimage"
)

// A packedFile is one file of an archive.
type packedFile struct {
	name string
	mode int64
	data []byte
}

// filesOf reads the files below a folder, to be packed as those of the folder into.
func filesOf(dir, into string) ([]packedFile, error) {
	names, err := filesIn(dir)
	if err != nil {
		return nil, err
	}
	var files []packedFile
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		files = append(files, packedFile{into + "/" + name, 0o644, data})
	}
	return files, nil
}

// licenseFiles are the license of the repository, which krew asks for, and in LICENSES the
// texts of all that the program links.
func licenseFiles(ctx context.Context, source ociimage.Source, program string, platform v1.Platform) ([]packedFile, error) {
	own, err := os.ReadFile(filepath.Join(source.Dir, "LICENSE"))
	if err != nil {
		return nil, err
	}
	texts, err := source.Licenses(ctx, program, platform)
	if err != nil {
		return nil, err
	}
	files := []packedFile{{"LICENSE", 0o644, own}}
	for _, text := range texts {
		files = append(files, packedFile{"LICENSES/" + text.Name, 0o644, text.Data})
	}
	return files, nil
}

// pack makes a tar.gz archive. The same files are the same archive.
func pack(files []packedFile, when time.Time) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for _, file := range files {
		header := &tar.Header{Name: file.name, Mode: file.mode, Size: int64(len(file.data)), ModTime: when, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(file.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	err := zipped.Close()
	return out.Bytes(), err
}
