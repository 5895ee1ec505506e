package policyserver

import (
	"crypto/x509"
	"encoding/asn1"
	"net"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"google.golang.org/grpc/credentials"
)

// Prefixes of identities that are no URI.
const (
	prefixDNS     = "dns:"
	prefixCN      = "cn:"
	prefixAddress = "address:"
)

// identities are all names of a caller: the URIs (SPIFFE IDs), the DNS names and the
// common name of its certificate, or its address if there are none of these. They are
// compared byte by byte, as they stand in the certificate: no letter is folded,
// no escape decoded, no wildcard expanded.
type identities []string

func identify(info credentials.AuthInfo, from net.Addr) identities {
	if tlsInfo, ok := info.(credentials.TLSInfo); ok && len(tlsInfo.State.PeerCertificates) > 0 {
		if ids := certificateIdentities(tlsInfo.State.PeerCertificates[0]); len(ids) > 0 {
			return ids
		}
	}
	host, _, err := net.SplitHostPort(from.String())
	if err != nil {
		host = from.String()
	}
	return identities{prefixAddress + host}
}

func certificateIdentities(cert *x509.Certificate) identities {
	var ids identities
	for _, uri := range writtenURIs(cert) {
		if isURI(uri) {
			ids = append(ids, uri)
		}
	}
	for _, name := range cert.DNSNames {
		ids = append(ids, prefixDNS+name)
	}
	if name := cert.Subject.CommonName; name != "" {
		ids = append(ids, prefixCN+name)
	}
	return ids
}

// X.509 marks the alternative names of a subject by this identifier, and a URI among them
// by uriTag.
var subjectAltName = asn1.ObjectIdentifier{2, 5, 29, 17}

const uriTag = 6

// writtenURIs are the URIs as they stand in the certificate. Certificate.URIs are parsed,
// and several texts may parse to the same.
func writtenURIs(cert *x509.Certificate) []string {
	var uris []string
	for _, extension := range cert.Extensions {
		var names []asn1.RawValue
		if !extension.Id.Equal(subjectAltName) {
			continue
		}
		if _, err := asn1.Unmarshal(extension.Value, &names); err != nil {
			continue // Cannot be: package x509 has parsed it.
		}
		for _, name := range names {
			if name.Class == asn1.ClassContextSpecific && name.Tag == uriTag {
				uris = append(uris, string(name.Bytes))
			}
		}
	}
	return uris
}

// isURI reports whether s is a URI that may be an identity: it has a scheme and a host,
// and cannot be taken for another kind of identity.
func isURI(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && !slices.Contains([]string{"", "dns", "cn", "address"}, u.Scheme)
}

// primary is the name that stands for the caller.
func (ids identities) primary() string { return ids[0] }

// first is the first identity for which found is true.
func (ids identities) first(found func(string) bool) (string, bool) {
	if i := slices.IndexFunc(ids, found); i >= 0 {
		return ids[i], true
	}
	return "", false
}

// maxShownBytes bounds texts of callers in logs, metrics and errors.
const maxShownBytes = 253

// shown is an identity for people: not too long, and without characters that a terminal
// or a log would not show. Different identities may look the same.
func shown(id string) string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, id[:min(len(id), maxShownBytes)])
	if len(id) > maxShownBytes {
		text += "…"
	}
	return text
}
