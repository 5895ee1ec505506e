package release

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"jobpolicy.dev/tools/internal/ociimage"
	"jobpolicy.dev/tools/internal/tarfile"
)

// licenseFiles are the license of the repository, which krew asks for, and in LICENSES the
// texts of all that the program links.
func licenseFiles(ctx context.Context, source ociimage.Source, program string, platform v1.Platform) ([]tarfile.File, error) {
	own, err := os.ReadFile(filepath.Join(source.Dir, "LICENSE"))
	if err != nil {
		return nil, err
	}
	texts, err := source.Licenses(ctx, program, platform)
	if err != nil {
		return nil, err
	}
	files := []tarfile.File{{Name: "LICENSE", Mode: 0o644, Data: own}}
	for _, text := range texts {
		files = append(files, tarfile.File{Name: "LICENSES/" + text.Name, Mode: 0o644, Data: text.Data})
	}
	return files, nil
}

// pack makes a tar.gz archive. The same files are the same archive.
func pack(files []tarfile.File, when time.Time) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	err := errors.Join(tarfile.Write(zipped, when, files), zipped.Close())
	return out.Bytes(), err
}
