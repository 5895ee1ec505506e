package policyserver

import (
	"crypto/x509"
	"net"
	"slices"

	"google.golang.org/grpc/credentials"

	"jobpolicy.dev/services/internal/refusal"
)

// Prefixes of identities that are no URI.
const (
	prefixDNS     = "dns:"
	prefixCN      = "cn:"
	prefixAddress = "address:"
)

// maxIdentityBytes bounds an identity in logs and metrics.
const maxIdentityBytes = 253

// identities are all names of a caller: the URIs (SPIFFE IDs) of its certificate,
// its DNS names, its common name; of a caller without a certificate its address.
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
	for _, uri := range cert.URIs {
		ids = append(ids, refusal.Clip(uri.String(), maxIdentityBytes))
	}
	for _, name := range cert.DNSNames {
		ids = append(ids, prefixDNS+refusal.Clip(name, maxIdentityBytes))
	}
	if name := cert.Subject.CommonName; name != "" {
		ids = append(ids, prefixCN+refusal.Clip(name, maxIdentityBytes))
	}
	return ids
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
