// Package testenv has what the tests of several packages need: certificates, valid snapshots,
// a collector of traces, a small API server, and programs as separate processes.
package testenv

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// An Authority signs certificates for one test.
type Authority struct {
	// File holds the authority's certificate.
	File string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// A Pair names the files of a certificate and its key.
type Pair struct{ CertFile, KeyFile string }

// NewAuthority makes an authority whose file is in a directory of its own.
func NewAuthority(t testing.TB, name string) *Authority {
	t.Helper()
	a := &Authority{File: filepath.Join(t.TempDir(), "ca.pem"), key: newKey(t)}
	template := newTemplate(t, name)
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign
	der := sign(t, template, template, &a.key.PublicKey, a.key)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a.cert = cert
	writePEM(t, a.File, "CERTIFICATE", der)
	return a
}

// Issue makes a certificate for 127.0.0.1 and the name, for a client or a server. It holds
// the URIs byte for byte, even invalid ones.
func (a *Authority) Issue(t testing.TB, name string, uris ...string) Pair {
	t.Helper()
	dir := t.TempDir()
	p := Pair{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}
	a.IssueTo(t, name, p, uris...)
	return p
}

// IssueTo is Issue into given files, which are replaced one after the other.
func (a *Authority) IssueTo(t testing.TB, name string, p Pair, uris ...string) {
	t.Helper()
	key := newKey(t)
	template := newTemplate(t, name)
	template.DNSNames = []string{name}
	for _, uri := range uris {
		scheme, rest, _ := strings.Cut(uri, ":")
		template.URIs = append(template.URIs, &url.URL{Scheme: scheme, Opaque: rest})
	}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	writePEM(t, p.CertFile, "CERTIFICATE", sign(t, template, a.cert, &key.PublicKey, a.key))
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, p.KeyFile, "PRIVATE KEY", der)
}

// ClientTLS is how a client calls a server of the authority that is called engine.
func ClientTLS(t testing.TB, authorityFile string, client Pair) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(client.CertFile, client.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ReadFile(t, authorityFile))
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, ServerName: "engine", NextProtos: []string{"h2"}}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newTemplate(t testing.TB, name string) *x509.Certificate {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
	}
}

func sign(t testing.TB, template, parent *x509.Certificate, public *ecdsa.PublicKey, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func writePEM(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	WriteFile(t, file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
