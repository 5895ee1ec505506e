package policyserver

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestListOfCallersThatCannotBeUsed(t *testing.T) {
	cases := map[string]struct{ list, want string }{
		"empty":                {"", "callers"},
		"nobody":               {"callers: []", "callers"},
		"an unknown field":     {"callers: [{identity: 'cn:x', method: ['*']}]", "method"},
		"no identity":          {"callers: [{methods: ['*']}]", "callers[0].identity"},
		"a name only":          {"callers: [{identity: executor}]", "callers[0].identity"},
		"a prefix only":        {"callers: [{identity: 'cn:'}]", "callers[0].identity"},
		"an unknown method":    {"callers: [{identity: 'cn:x', methods: ['*', Decide]}]", "callers[0].methods[1]"},
		"text that is no list": {"callers", "AllowList"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := parseAllowList([]byte(tc.list)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one that names %s", err, tc.want)
			}
		})
	}
}

func TestIdentitiesOfACertificate(t *testing.T) {
	id := &url.URL{Scheme: "spiffe", Host: "cluster.local", Path: "/ns/a/sa/b"}
	got := certificateIdentities(&x509.Certificate{
		URIs: []*url.URL{id}, DNSNames: []string{"a.example", "b.example"},
		Subject: pkix.Name{CommonName: strings.Repeat("x", 1000)},
	})
	want := identities{"spiffe://cluster.local/ns/a/sa/b", "dns:a.example", "dns:b.example", "cn:" + strings.Repeat("x", 253) + "…"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("identities (-want +got):\n%s", diff)
	}
}
