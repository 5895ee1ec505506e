// Package tlsfiles makes gRPC transport credentials from PEM files, or from a Secret with
// their content. When they change, new connections use the new content. Open connections
// stay as they are.
package tlsfiles

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"

	"k8s.io/client-go/util/cert"
)

// A reloaded value is parsed from files, and parsed again when their content changes. It
// compares contents, not times: contents are small, handshakes are rare, and files that
// are replaced by symbolic links, as in mounted Secrets, need no special case. (gRPC's
// package certprovider/pemfile reads files by a timer, not at each handshake, and cannot
// read Secrets from the API server.)
type reloaded[T any] struct {
	from  source
	parse func(contents [][]byte) (T, error)
	log   *slog.Logger

	mu       sync.Mutex
	contents [][]byte
	value    T
	loaded   bool
	problem  string
}

// current returns the value as the files have it now. When they cannot be read
// or parsed, for example because only one of a pair has been replaced so far,
// the last good value stays in use and the problem is logged, once. It fails
// only if there never was a good value.
func (r *reloaded[T]) current() (T, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	contents, err := r.from.read()
	if err == nil && r.loaded && slices.EqualFunc(contents, r.contents, bytes.Equal) {
		r.problem = ""
		return r.value, nil
	}
	if err == nil {
		err = r.replace(contents)
	}
	if err == nil {
		return r.value, nil
	}
	if !r.loaded {
		return r.value, err
	}
	if r.problem != err.Error() {
		r.problem = err.Error()
		r.log.Warn("changed TLS files not usable, keeping the previous ones", "error", err)
	}
	return r.value, nil
}

func (r *reloaded[T]) replace(contents [][]byte) error {
	value, err := r.parse(contents)
	if err != nil {
		return err
	}
	if r.loaded {
		r.log.Info("TLS files reloaded", "files", r.from.names)
	}
	r.value, r.contents, r.loaded, r.problem = value, contents, true, ""
	return nil
}

// A source reads texts that belong together, such as a certificate and its key.
type source struct {
	names []string
	read  func() ([][]byte, error)
}

// A reading returns one of a source's texts by its name.
type reading func(name string) ([]byte, error)

func newSource(read reading, names ...string) source {
	return source{names: names, read: func() ([][]byte, error) {
		contents := make([][]byte, 0, len(names))
		for _, name := range names {
			b, err := read(name)
			if err != nil {
				return nil, err
			}
			contents = append(contents, b)
		}
		return contents, nil
	}}
}

func files(names ...string) source { return newSource(os.ReadFile, names...) }

// newKeyPair follows a certificate and its key, in this order.
func newKeyPair(from source, log *slog.Logger) *reloaded[*tls.Certificate] {
	return &reloaded[*tls.Certificate]{
		from: from,
		log:  log,
		parse: func(contents [][]byte) (*tls.Certificate, error) {
			pair, err := tls.X509KeyPair(contents[0], contents[1])
			if err != nil {
				return nil, fmt.Errorf("certificate %s with key %s: %w", from.names[0], from.names[1], err)
			}
			return &pair, nil
		},
	}
}

func newPool(from source, log *slog.Logger) *reloaded[*x509.CertPool] {
	return &reloaded[*x509.CertPool]{
		from: from,
		log:  log,
		parse: func(contents [][]byte) (*x509.CertPool, error) {
			pool, err := parsePool(contents[0])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", from.names[0], err)
			}
			return pool, nil
		},
	}
}

// parsePool fails if one of the certificates cannot be read. AppendCertsFromPEM would skip
// it, and then its authority would not be trusted.
func parsePool(text []byte) (*x509.CertPool, error) {
	certificates, err := cert.ParseCertsPEM(text)
	if err != nil {
		return nil, fmt.Errorf("must be PEM certificates: %w", err)
	}
	if n := bytes.Count(text, []byte("-----BEGIN CERTIFICATE-----")); n != len(certificates) {
		return nil, fmt.Errorf("must be PEM certificates: only %d of %d can be read", len(certificates), n)
	}
	pool := x509.NewCertPool()
	for _, c := range certificates {
		pool.AddCert(c)
	}
	return pool, nil
}
