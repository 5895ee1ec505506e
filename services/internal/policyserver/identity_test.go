package policyserver_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"jobpolicy.dev/services/internal/testengine"
)

// An authority signs the URIs that it is asked for, and none of them makes another kind
// of name.
func TestNoURIPosesAsSomebodyElse(t *testing.T) {
	s := newSecured(t, testengine.Config{}, `
callers:
- {identity: "cn:executor", methods: ["*"]}
- {identity: "cn://executor", methods: ["*"]}
- {identity: "dns:executor", methods: ["*"]}
- {identity: "spiffe://cluster.local/executor", methods: ["*"]}
`)
	if err := decide(patient(t), s.with(t, s.authority.Issue(t, "somebody", "spiffe://cluster.local/executor"))); err != nil {
		t.Errorf("the SPIFFE ID of the list: %v", err)
	}
	for _, uri := range []string{
		"cn:executor", "CN:executor", "dns:executor", "address:127.0.0.1",
		"cn://executor", "CN://executor", "dns://executor",
		"spiffe:cluster.local/executor",
		"SPIFFE://cluster.local/executor", "spiffe://CLUSTER.local/executor", "spiffe://cluster.local/Executor",
		"spiffe://cluster.local/executor#", "spiffe://cluster.local/executor?", "spiffe://cluster.local/executor/",
		"spiffe://cluster.local/%65xecutor", "spiffe://cluster.local/x/../executor",
		"spiffe://@cluster.local/executor", "spiffe://cluster.local:/executor", "spiffe://cluster.local:443/executor",
	} {
		err := decide(patient(t), s.with(t, s.authority.Issue(t, "mallory", uri)))
		if status.Code(err) != codes.PermissionDenied {
			t.Errorf("a certificate with the URI %s: %v, want PERMISSION_DENIED", uri, err)
		}
	}
}

// Names are compared in full, however long.
func TestLongIdentitiesAreComparedInFull(t *testing.T) {
	id := "spiffe://cluster.local/" + strings.Repeat("x", 1000)
	s := newSecured(t, testengine.Config{}, "callers: [{identity: '"+id+"', methods: ['*']}]")
	if err := decide(patient(t), s.with(t, s.authority.Issue(t, "long", id))); err != nil {
		t.Errorf("a long identity that is named: %v", err)
	}
	err := decide(patient(t), s.with(t, s.authority.Issue(t, "longer", id+"x")))
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("an identity that begins as one that is named: %v, want PERMISSION_DENIED", err)
	}
	if text := status.Convert(err).Message(); len(text) > 500 {
		t.Errorf("the error has %d bytes: %s", len(text), text)
	}
}
