package issuer

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Keys of the authority's Secret. The certificates' Secrets have the first three.
const (
	certKey   = corev1.TLSCertKey
	keyKey    = corev1.TLSPrivateKeyKey
	bundleKey = "ca.crt"

	nextCertKey   = "next.crt"
	nextKeyKey    = "next.key"
	announcedKey  = "next-announced"
	trustUntilKey = "earlier-trusted-until"
	rotatedKey    = "rotated"
)

// RotateAnnotation on the authority's Secret asks for another authority, once for each
// value.
const RotateAnnotation = "jobpolicy.dev/rotate"

// An authority is the content of the authority's Secret.
type authority struct {
	// current signs. next is announced, and nil if there is none.
	current, next *pair
	// announced is when every ca.crt was seen to have next; zero before.
	announced time.Time
	// earlier are the earlier authorities. They are trusted until earlierUntil.
	earlier      []*x509.Certificate
	earlierUntil time.Time
	// rotated is the last value of RotateAnnotation that was carried out.
	rotated string
}

// readAuthority reads the Secret's data. Values that cannot be read count as missing.
func readAuthority(data map[string][]byte) authority {
	a := authority{
		current:      parsePair(data[certKey], data[keyKey]),
		next:         parsePair(data[nextCertKey], data[nextKeyKey]),
		announced:    parseTime(data[announcedKey]),
		earlierUntil: parseTime(data[trustUntilKey]),
		rotated:      string(data[rotatedKey]),
	}
	for _, cert := range parseBundle(data[bundleKey]) {
		if !a.current.is(cert) && !a.next.is(cert) {
			a.earlier = append(a.earlier, cert)
		}
	}
	if a.next == nil && len(data[nextCertKey])+len(data[nextKeyKey]) > 0 {
		a.rotated = "" // The authority that cannot be read may be the one that was asked for.
	}
	return a
}

// data is the Secret's data, which readAuthority reads.
func (a authority) data() map[string][]byte {
	data := map[string][]byte{certKey: a.current.certPEM, keyKey: a.current.keyPEM, bundleKey: a.bundle()}
	if a.next != nil {
		data[nextCertKey], data[nextKeyKey] = a.next.certPEM, a.next.keyPEM
	}
	if !a.announced.IsZero() {
		data[announcedKey] = formatTime(a.announced)
	}
	if len(a.earlier) > 0 {
		data[trustUntilKey] = formatTime(a.earlierUntil)
	}
	if a.rotated != "" {
		data[rotatedKey] = []byte(a.rotated)
	}
	return data
}

// bundle is the ca.crt of every Secret: all trusted authorities, in an order that does
// not change when another of them signs.
func (a authority) bundle() []byte {
	certs := slices.Clone(a.earlier)
	for _, p := range []*pair{a.current, a.next} {
		if p != nil {
			certs = append(certs, p.cert)
		}
	}
	slices.SortFunc(certs, func(x, y *x509.Certificate) int { return bytes.Compare(x.Raw, y.Raw) })
	var text []byte
	for _, cert := range certs {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})...)
	}
	return text
}

// A rotation holds the input of advance besides the authority itself.
type rotation struct {
	name   string
	now    time.Time
	wanted string // the value of RotateAnnotation
	// seen says that every ca.crt that is known to be there is the authority's bundle.
	seen                        bool
	lifetime, leaf, propagation time.Duration
}

// valid reports whether the authority may sign. A clock that is a bit behind does not make
// it invalid, because others trust it already.
func (r rotation) valid(p *pair) bool {
	return p != nil && r.now.Before(p.cert.NotAfter) && !r.now.Before(p.cert.NotBefore.Add(-backdate(r.lifetime)))
}

// corrected repairs what a damaged Secret or a clock that was ahead has left behind.
func (a authority) corrected(r rotation) authority {
	if a.next != nil && !r.valid(a.next) {
		a.next, a.rotated = nil, "" // It may be the one that was asked for.
	}
	if a.next == nil || a.announced.After(r.now) {
		a.announced = time.Time{}
	}
	// An authority whose key cannot be read has become an earlier one just now. Otherwise a
	// time far ahead may be right: the lifetime of certificates may have been longer. But none
	// is valid longer than an authority.
	if a.current == nil || a.earlierUntil.IsZero() || a.earlierUntil.After(r.now.Add(r.lifetime)) {
		a.earlierUntil = r.now.Add(r.leaf)
	}
	return a
}

// advance takes the next step that is due, if any.
func (a authority) advance(r rotation) (authority, error) {
	a = a.corrected(r)
	if len(a.earlier) > 0 && !r.now.Before(a.earlierUntil) {
		a.earlier, a.earlierUntil = nil, time.Time{}
	}
	var err error
	switch {
	case !r.valid(a.current) && r.valid(a.next):
		// Others may trust the announced authority already. Nobody would trust a new one.
		a.current, a.next, a.announced = a.next, nil, time.Time{}
	case !r.valid(a.current):
		// No authority can sign, so the new one is in force at once.
		a.current, err = newAuthority(r.name, r.now, r.lifetime)
		a.next, a.announced, a.rotated = nil, time.Time{}, r.wanted
	case a.next == nil && (r.wanted != "" && r.wanted != a.rotated || !r.now.Before(renewalTime(a.current.cert))):
		a.next, err = newAuthority(r.name, r.now, r.lifetime)
		a.announced, a.rotated = time.Time{}, r.wanted
	case a.next != nil && a.announced.IsZero() && r.seen:
		a.announced = r.now
	case a.next != nil && !a.announced.IsZero() && r.seen && !r.now.Before(a.announced.Add(r.propagation)) && !r.now.Before(a.next.cert.NotBefore):
		a.earlier = append(slices.Clone(a.earlier), a.current.cert)
		a.earlierUntil = r.now.Add(r.leaf)
		a.current, a.next, a.announced = a.next, nil, time.Time{}
	}
	return a, err
}

func (p *pair) is(cert *x509.Certificate) bool { return p != nil && p.cert.Equal(cert) }

func parseTime(text []byte) time.Time {
	at, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return time.Time{}
	}
	return at
}

func formatTime(at time.Time) []byte { return []byte(at.UTC().Format(time.RFC3339Nano)) }
