package issuer

import (
	"crypto/x509"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A Leaf is a certificate to keep.
type Leaf struct {
	// Secret holds it. The Secret must exist.
	Secret types.NamespacedName
	// CommonName is the subject's name.
	CommonName string
	// DNSNames are the names of a server. A leaf without names is a client's.
	DNSNames []string
}

func (l Leaf) usage() x509.ExtKeyUsage {
	if len(l.DNSNames) > 0 {
		return x509.ExtKeyUsageServerAuth
	}
	return x509.ExtKeyUsageClientAuth
}

// renew returns the data for the leaf's Secret, with the present pair if that is good.
func (l Leaf) renew(data map[string][]byte, by authority, now time.Time, lifetime time.Duration) (map[string][]byte, error) {
	have := parsePair(data[certKey], data[keyKey])
	if !l.good(have, by.current, now) {
		var err error
		if have, err = newLeaf(l, by.current, now, lifetime); err != nil {
			return nil, err
		}
	}
	return map[string][]byte{certKey: have.certPEM, keyKey: have.keyPEM, bundleKey: by.bundle()}, nil
}

// good reports whether the pair has the leaf's names, is signed by the authority, is valid
// already, and need not be renewed yet.
func (l Leaf) good(have, by *pair, now time.Time) bool {
	return have != nil && !now.Before(have.cert.NotBefore) && now.Before(renewalTime(have.cert)) &&
		have.cert.CheckSignatureFrom(by.cert) == nil &&
		have.cert.Subject.CommonName == l.CommonName &&
		slices.Equal(have.cert.DNSNames, l.DNSNames) &&
		slices.Contains(have.cert.ExtKeyUsage, l.usage())
}
