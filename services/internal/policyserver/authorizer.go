package policyserver

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"sigs.k8s.io/yaml"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/refusal"
)

// An AllowList says who may call what. Its file is YAML or JSON:
//
//	callers:
//	  - identity: cn:jobpolicy-executor
//	    methods: ["*"]
//	  - identity: spiffe://cluster.local/ns/queueing/sa/controller
//	    methods: [DecideJob, DecideJobs]
//
// The package google.golang.org/grpc/authz has the same purpose. It is not used:
// it decides only after a message was received, refuses without saying why, takes
// the common name for the whole subject, and brings Envoy's API with it.
type AllowList struct {
	Callers []AllowedCaller `json:"callers"`
}

// An AllowedCaller is one identity and what it may call.
type AllowedCaller struct {
	// Identity is a SPIFFE ID, dns: with a DNS name, or cn: with a common name.
	Identity string `json:"identity"`
	// Methods are names of methods of PolicyService, or "*" for all.
	Methods []string `json:"methods"`
}

// anyMethod stands for all methods of PolicyService.
const anyMethod = "*"

// grants are the methods by identity.
type grants map[string]map[string]bool

func parseAllowList(b []byte) (grants, error) {
	var list AllowList
	if err := yaml.UnmarshalStrict(b, &list); err != nil {
		return nil, err
	}
	if len(list.Callers) == 0 {
		return nil, errors.New("callers: must name at least one")
	}
	known := map[string]bool{anyMethod: true}
	for _, m := range jobpolicyv1grpc.PolicyService_ServiceDesc.Methods {
		known[m.MethodName] = true
	}
	g := grants{}
	for i, c := range list.Callers {
		if !isIdentity(c.Identity) {
			return nil, fmt.Errorf("callers[%d].identity: must be a URI as spiffe://…, dns:NAME or cn:NAME, is %q", i, c.Identity)
		}
		if g[c.Identity] == nil {
			g[c.Identity] = map[string]bool{}
		}
		for j, m := range c.Methods {
			if !known[m] {
				return nil, fmt.Errorf("callers[%d].methods[%d]: must be a method of PolicyService or *, is %q", i, j, m)
			}
			g[c.Identity][m] = true
		}
	}
	return g, nil
}

func isIdentity(s string) bool {
	for _, prefix := range []string{prefixDNS, prefixCN} {
		if name, ok := strings.CutPrefix(s, prefix); ok {
			return name != ""
		}
	}
	return strings.Contains(s, "://")
}

// reloadAfter is how long a list is used before its file is looked at again.
const reloadAfter = time.Second

// An authorizer says who may call what, as a file has it. A nil authorizer lets
// everybody call everything.
type authorizer struct {
	file string
	log  *slog.Logger

	mu       sync.Mutex
	looked   time.Time
	contents []byte
	grants   grants
	problem  string
}

// newAuthorizer reads the file. An empty name makes no authorizer.
func newAuthorizer(file string, log *slog.Logger) (*authorizer, error) {
	if file == "" {
		return nil, nil
	}
	a := &authorizer{file: file, log: log}
	if err := a.load(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	a.looked = time.Now()
	return a, nil
}

func (a *authorizer) load() error {
	b, err := os.ReadFile(a.file)
	if err != nil || (a.grants != nil && bytes.Equal(b, a.contents)) {
		return err
	}
	g, err := parseAllowList(b)
	if err != nil {
		return err
	}
	a.contents, a.grants = b, g
	return nil
}

// current is the list as the file has it, or had it when it was last usable.
func (a *authorizer) current() grants {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.looked) < reloadAfter {
		return a.grants
	}
	before := a.contents
	err := a.load()
	switch {
	case err != nil && a.problem != err.Error():
		a.problem = err.Error()
		a.log.Warn("list of authorized callers not usable, keeping the previous one", "file", a.file, "error", err)
	case err == nil:
		a.problem = ""
		if !bytes.Equal(before, a.contents) {
			a.log.Info("list of authorized callers reloaded", "file", a.file, "callers", len(a.grants))
		}
	}
	a.looked = time.Now()
	return a.grants
}

// name is what a caller is called in metrics and logs.
func (a *authorizer) name(ids identities) string {
	if a == nil {
		return ids.primary()
	}
	g := a.current()
	if id, ok := ids.first(func(id string) bool { return g[id] != nil }); ok {
		return id
	}
	return unnamed
}

// authorize returns nil if one of the identities may call the method. An empty
// method is one that is no part of PolicyService: whoever is named may call it.
func (a *authorizer) authorize(ids identities, method string) error {
	if a == nil {
		return nil
	}
	g := a.current()
	named := false
	for _, id := range ids {
		methods, ok := g[id]
		if ok && (method == "" || methods[method] || methods[anyMethod]) {
			return nil
		}
		named = named || ok
	}
	why := "is not in the engine's list of authorized callers"
	if named {
		why = "is in the engine's list of authorized callers, but not for this method"
	}
	return refusal.Refusal{
		Code: codes.PermissionDenied, Reason: jobpolicyv1.ErrorReason_ERROR_REASON_CALLER_NOT_ALLOWED,
		Text:     fmt.Sprintf("%s may not call %s: it %s", ids.primary(), method, why),
		Metadata: map[string]string{"caller": ids.primary(), "method": method},
	}.Err()
}
