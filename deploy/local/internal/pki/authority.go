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
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/pkiutil"
)

const keys = kubeadmapi.EncryptionAlgorithmECDSAP256

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
// two does not exist it makes a new authority, for ten years, and writes both.
func loadOrCreateAuthority(dir, name string) (*Authority, error) {
	pair := pairIn(dir, name)
	if exists(pair.Cert) && exists(pair.Key) {
		cert, key, err := pkiutil.TryLoadCertAndKeyFromDisk(dir, name)
		if err != nil {
			return nil, fmt.Errorf("certificate authority %s: %w", name, err)
		}
		return &Authority{cert: cert, key: key}, nil
	}
	config := pkiutil.CertConfig{EncryptionAlgorithm: keys, Config: certutil.Config{CommonName: "jobpolicy-local " + name}}
	cert, key, err := pkiutil.NewCertificateAuthority(&config)
	if err != nil {
		return nil, fmt.Errorf("certificate authority %s: %w", name, err)
	}
	return &Authority{cert: cert, key: key}, writePair(pair, cert, key)
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// issue signs a certificate, for a year, for a new key and writes both to pair.
func (a *Authority) issue(pair Pair, leaf Leaf) error {
	config := pkiutil.CertConfig{EncryptionAlgorithm: keys, Config: certutil.Config{
		CommonName: leaf.CommonName, Organization: leaf.Organizations, Usages: leaf.Usages,
	}}
	for _, host := range leaf.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			config.AltNames.IPs = append(config.AltNames.IPs, ip)
			continue
		}
		config.AltNames.DNSNames = append(config.AltNames.DNSNames, host)
	}
	cert, key, err := pkiutil.NewCertAndKey(a.cert, a.key, &config)
	if err != nil {
		return fmt.Errorf("certificate %s: %w", leaf.CommonName, err)
	}
	return writePair(pair, cert, key)
}

// writePair writes the key first: a certificate file then always has its key.
func writePair(pair Pair, cert *x509.Certificate, key crypto.Signer) error {
	if err := writeKey(pair.Key, key); err != nil {
		return err
	}
	return replace(pair.Cert, pkiutil.EncodeCertPEM(cert))
}

func writeKey(path string, key crypto.Signer) error {
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return replace(path, text)
}

// replace writes path in one step, so that a run that is killed never leaves
// half a file for the next one, which pkiutil's own files would be. Certificates
// are as private as keys here: only their owner has business in the state directory.
func replace(path string, text []byte) error {
	tmp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.WriteFile(tmp, text, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
