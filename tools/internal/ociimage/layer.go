package ociimage

import (
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
	"jobpolicy.dev/tools/internal/tarfile"
)

// files is the layer that all images share: what a program without an operating
// system expects to find.
func files() []tarfile.File {
	return []tarfile.File{
		{Name: "etc/", Mode: 0o755},
		{Name: "etc/group", Mode: 0o644, Data: []byte("root:x:0:\nnonroot:x:" + user + ":\n")},
		{Name: "etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:" + user + ":" + user + ":nonroot:/:/sbin/nologin\n")},
		{Name: "etc/ssl/", Mode: 0o755},
		{Name: "etc/ssl/certs/", Mode: 0o755},
		{Name: "etc/ssl/certs/ca-certificates.crt", Mode: 0o644, Data: authorities()},
	}
}

// licenseFiles is the layer of the license texts, in the folders of their modules.
func licenseFiles(texts []licenses.Text) []tarfile.File {
	var entries []tarfile.File
	made := map[string]bool{".": true}
	var folder func(dir string)
	folder = func(dir string) {
		if !made[dir] {
			made[dir] = true
			folder(path.Dir(dir))
			entries = append(entries, tarfile.File{Name: dir + "/", Mode: 0o755})
		}
	}
	for _, text := range texts {
		name := path.Join("licenses", text.Name)
		folder(path.Dir(name))
		entries = append(entries, tarfile.File{Name: name, Mode: 0o644, Data: text.Data})
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
func newLayer(entries []tarfile.File) (v1.Layer, error) {
	var packed bytes.Buffer
	if err := tarfile.Write(&packed, time.Unix(0, 0), entries); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	return tarball.LayerFromOpener(open,
		tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithCompressedCaching, tarball.WithMediaType(types.OCILayer))
}
