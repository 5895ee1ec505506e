package policyserver

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jobpolicy.dev/services/internal/testenv"
)

func TestListOfCallersThatCannotBeUsed(t *testing.T) {
	cases := map[string]struct{ list, want string }{
		"empty":                {"", "callers"},
		"nobody":               {"callers: []", "callers"},
		"an unknown field":     {"callers: [{identity: 'cn:x', method: ['*']}]", "method"},
		"no identity":          {"callers: [{methods: ['*']}]", "callers[0].identity"},
		"a name only":          {"callers: [{identity: executor}]", "callers[0].identity"},
		"a prefix only":        {"callers: [{identity: 'cn:'}]", "callers[0].identity"},
		"an address":           {"callers: [{identity: 'address://127.0.0.1'}]", "callers[0].identity"},
		"a URI without a host": {"callers: [{identity: 'spiffe:///executor'}]", "callers[0].identity"},
		"an unknown method":    {"callers: [{identity: 'cn:x', methods: ['*', Decide]}]", "callers[0].methods[1]"},
		"text that is no list": {"callers", "AllowList"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := parseAllowList([]byte(tc.list))
			testenv.WantError(t, err, tc.want)
		})
	}
}

func TestIdentitiesOfACertificate(t *testing.T) {
	block, _ := pem.Decode(testenv.ReadFile(t, testenv.NewAuthority(t, "authority").Issue(t, "a.example", "spiffe://cluster.local/ns/a/sa/b", "cn:c", "urn:d", "//e/f").CertFile))
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	want := identities{"spiffe://cluster.local/ns/a/sa/b", "dns:a.example", "cn:a.example"}
	if diff := cmp.Diff(want, certificateIdentities(cert)); diff != "" {
		t.Errorf("identities (-want +got):\n%s", diff)
	}
}

func TestShownIdentitiesAreShortAndPrintable(t *testing.T) {
	cases := map[string]struct{ id, want string }{
		"as usual":                   {"cn:jobpolicy-executor", "cn:jobpolicy-executor"},
		"letters of other languages": {"cn:né 実", "cn:né 実"},
		"a line of its own":          {"cn:a\nlevel=ERROR", "cn:a\uFFFDlevel=ERROR"},
		"the other way round":        {"cn:a\u202Eb", "cn:a\uFFFDb"},
		"what is not UTF-8":          {"cn:a\xff", "cn:a\uFFFD"},
		"long":                       {strings.Repeat("x", 1000), strings.Repeat("x", 253) + "…"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := shown(tc.id); got != tc.want {
				t.Errorf("shown as %q, want %q", got, tc.want)
			}
		})
	}
}
