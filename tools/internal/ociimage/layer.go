package ociimage

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"io"
	"path"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"jobpolicy.dev/tools/internal/licenses"
)

// entry is a file or, without data, a folder of a layer.
type entry struct {
	name string // absolute
	mode int64
	data []byte
}

// files is the layer that all images share: what a program without an operating
// system expects to find.
func files() []entry {
	return []entry{
		{name: "/etc/", mode: 0o755},
		{name: "/etc/group", mode: 0o644, data: []byte("root:x:0:\nnonroot:x:" + user + ":\n")},
		{name: "/etc/passwd", mode: 0o644, data: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:" + user + ":" + user + ":nonroot:/:/sbin/nologin\n")},
		{name: "/etc/ssl/", mode: 0o755},
		{name: "/etc/ssl/certs/", mode: 0o755},
		{name: "/etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: authorities()},
	}
}

// licenseFiles is the layer of the license texts, in the folders of their modules.
func licenseFiles(texts []licenses.Text) []entry {
	var entries []entry
	made := map[string]bool{"/": true}
	var folder func(dir string)
	folder = func(dir string) {
		if !made[dir] {
			made[dir] = true
			folder(path.Dir(dir))
			entries = append(entries, entry{name: dir + "/", mode: 0o755})
		}
	}
	for _, text := range texts {
		name := path.Join("/licenses", text.Name)
		folder(path.Dir(name))
		entries = append(entries, entry{name: name, mode: 0o644, data: text.Data})
	}
	return entries
}

// authoritiesPackage is where authorities gets the certificates.
const authoritiesPackage = "golang.org/x/crypto/x509roots/fallback/bundle"

// authorities is Mozilla's list of the web's certificate authorities, as the module
// golang.org/x/crypto/x509roots/fallback has it at the version in go.mod. Those that
// Mozilla trusts for some of their certificates only are left out: a file of
// certificates cannot say so.
func authorities() []byte {
	var file bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			// Writing to a buffer cannot fail.
			_ = pem.Encode(&file, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return file.Bytes()
}

// newLayer packs the entries, in their order. All belong to root and are of the same
// old day: what is equal has the same digest in every release.
func newLayer(entries []entry) (v1.Layer, error) {
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, e := range entries {
		header := &tar.Header{
			Typeflag: tar.TypeReg,
			Name:     e.name[1:],
			Mode:     e.mode,
			Size:     int64(len(e.data)),
			ModTime:  time.Unix(0, 0),
			Format:   tar.FormatUSTAR,
		}
		if e.data == nil {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	return tarball.LayerFromOpener(open,
		tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithCompressedCaching, tarball.WithMediaType(types.OCILayer))
}
