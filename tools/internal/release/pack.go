package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"time"
)

// A packedFile is one file of an archive.
type packedFile struct {
	name string
	mode int64
	data []byte
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
