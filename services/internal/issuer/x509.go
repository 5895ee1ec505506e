package issuer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"
)

// backdate makes certificates valid at once on machines whose clocks are behind.
func backdate(lifetime time.Duration) time.Duration { return min(time.Hour, lifetime/10) }

// A pair is a certificate with its key, parsed and as PEM.
type pair struct {
	cert            *x509.Certificate
	key             crypto.Signer
	certPEM, keyPEM []byte
}

// parsePair returns nil if the two do not belong together.
func parsePair(certPEM, keyPEM []byte) *pair {
	both, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil
	}
	signer, ok := both.PrivateKey.(crypto.Signer)
	if !ok {
		return nil
	}
	return &pair{cert: both.Leaf, key: signer, certPEM: certPEM, keyPEM: keyPEM}
}

// parseBundle returns the certificates of a ca.crt. It leaves out everything else.
func parseBundle(text []byte) []*x509.Certificate {
	var certs []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			certs = append(certs, cert)
		}
	}
	return certs
}

// newAuthority makes an authority that signs itself.
func newAuthority(name string, now time.Time, lifetime time.Duration) (*pair, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name + " " + now.UTC().Format(time.RFC3339)},
		NotBefore:             now.Add(-backdate(lifetime)),
		NotAfter:              now.Add(lifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	return issue(template, nil)
}

// newLeaf makes a certificate that the authority signs. It expires no later than the
// authority.
func newLeaf(leaf Leaf, by *pair, now time.Time, lifetime time.Duration) (*pair, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: leaf.CommonName},
		NotBefore:   now.Add(-backdate(lifetime)),
		NotAfter:    now.Add(lifetime),
		DNSNames:    leaf.DNSNames,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{leaf.usage()},
	}
	if template.NotAfter.After(by.cert.NotAfter) {
		template.NotAfter = by.cert.NotAfter
	}
	return issue(template, by)
}

// issue makes a key and its certificate. The authority signs it; without one, the new key
// does.
func issue(template *x509.Certificate, by *pair) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, err
	}
	parent, signer := template, crypto.Signer(key)
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	cert, err := x509.ParseCertificate(der)
	return &pair{cert: cert, key: key, certPEM: certPEM, keyPEM: keyPEM}, err
}

// renewalTime is when two thirds of a certificate's life are over.
func renewalTime(cert *x509.Certificate) time.Time {
	return cert.NotBefore.Add(cert.NotAfter.Sub(cert.NotBefore) / 3 * 2)
}
