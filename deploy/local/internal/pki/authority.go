// Package pki issues the certificates of a local control plane: four small
// authorities, so that a certificate is good for exactly one kind of server.
// A holder of a Kubernetes client certificate cannot read etcd, call the node's
// log API or ask the policy engine.
//
// Authorities and the service-account key live as long as the state directory.
// Everything that they sign is issued anew at each start, so nothing expires
// under a control plane that is kept and started again.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	authorityLifetime = 10 * 365 * 24 * time.Hour
	leafLifetime      = 365 * 24 * time.Hour
	// backdate forgives a clock that is set back a little after the start.
	backdate = time.Hour
)

// Leaf describes a certificate to issue.
type Leaf struct {
	// CommonName is the Kubernetes user name in a client certificate.
	CommonName string
	// Organizations are the Kubernetes groups in a client certificate.
	Organizations []string
	// Hosts are the DNS names and IP addresses that a server certificate
	// answers for.
	Hosts []string
	// Usages say whether it is for a server, a client, or both.
	Usages []x509.ExtKeyUsage
}

// Authority signs certificates.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// loadOrCreateAuthority reads dir/name.crt and dir/name.key. When one of the
// two does not exist it makes a new authority and writes both.
func loadOrCreateAuthority(dir, name string) (*Authority, error) {
	pair := pairIn(dir, name)
	a, err := loadAuthority(pair)
	if errors.Is(err, fs.ErrNotExist) {
		return createAuthority(pair, name)
	}
	if err != nil {
		return nil, fmt.Errorf("certificate authority %s: %w", name, err)
	}
	return a, nil
}

func loadAuthority(pair Pair) (*Authority, error) {
	certDER, err := readPEM(pair.Cert)
	if err != nil {
		return nil, err
	}
	keyDER, err := readPEM(pair.Key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(certDER)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pair.Cert, err)
	}
	key, err := x509.ParseECPrivateKey(keyDER)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pair.Key, err)
	}
	return &Authority{cert: cert, key: key}, nil
}

func createAuthority(pair Pair, name string) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(pkix.Name{CommonName: "jobpolicy-local " + name}, authorityLifetime)
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("certificate authority %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("certificate authority %s: %w", name, err)
	}
	return &Authority{cert: cert, key: key}, writePair(pair, der, key)
}

// issue signs a certificate for a new key and writes both to pair.
func (a *Authority) issue(pair Pair, leaf Leaf) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	subject := pkix.Name{CommonName: leaf.CommonName, Organization: leaf.Organizations}
	template, err := newTemplate(subject, leafLifetime)
	if err != nil {
		return err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = leaf.Usages
	for _, host := range leaf.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		template.DNSNames = append(template.DNSNames, host)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return fmt.Errorf("certificate %s: %w", leaf.CommonName, err)
	}
	return writePair(pair, der, key)
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	return key, nil
}

func newTemplate(subject pkix.Name, lifetime time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-backdate),
		NotAfter:     now.Add(lifetime),
	}, nil
}

// writePair writes the key first: a certificate file then always has its key.
func writePair(pair Pair, der []byte, key *ecdsa.PrivateKey) error {
	if err := writeKey(pair.Key, key); err != nil {
		return err
	}
	return writePEM(pair.Cert, "CERTIFICATE", der)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func readPEM(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s: no PEM block", path)
	}
	return block.Bytes, nil
}

// writePEM replaces path in one step, so that a run that is killed never leaves
// half a file for the next one. Certificates are as private as keys here: only
// their owner has business in the state directory.
func writePEM(path, kind string, der []byte) error {
	tmp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(tmp, text, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
