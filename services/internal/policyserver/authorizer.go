package policyserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"sigs.k8s.io/yaml"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/probes"
	"jobpolicy.dev/services/internal/refusal"
)

// An AllowList says who may call what. Its file is YAML or JSON:
//
//	callers:
//	  - identity: cn:jobpolicy-executor
//	    methods: ["*"]
//	  - identity: spiffe://cluster.local/ns/queueing/sa/controller
//	    methods: [DecideJob, DecideCronJob]
//
// The package google.golang.org/grpc/authz has the same purpose. It is not used:
// it decides only after a message was received, refuses without saying why, takes
// the common name for the whole subject, and brings Envoy's API with it.
type AllowList struct {
	Callers []AllowedCaller `json:"callers"`
}

// An AllowedCaller is one identity and what it may call.
type AllowedCaller struct {
	// Identity is a SPIFFE ID (or another URI with a host), dns: with a DNS name, or cn:
	// with a common name. It must be exactly as in the certificate.
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
			return nil, fmt.Errorf("callers[%d].identity: must be a URI such as spiffe://…, dns:NAME or cn:NAME, is %q", i, c.Identity)
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
	return isURI(s)
}

// reloadAfter is how long a list is used before its file is read again.
const reloadAfter = time.Second

// An authorizer allows the calls that a file lists. A nil authorizer lets everybody call
// everything.
type authorizer struct {
	file string
	log  *slog.Logger

	mu       sync.Mutex
	looked   time.Time
	contents []byte
	grants   grants
	problem  string    // why the file cannot be used; empty if it can
	since    time.Time // when the problem was first seen
}

// newAuthorizer reads the file. It returns nil if the name is empty.
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

// current is the list in the file, or the last usable one if the file cannot be used.
func (a *authorizer) current() grants {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.looked) < reloadAfter {
		return a.grants
	}
	a.reload()
	a.looked = time.Now()
	return a.grants
}

// reload reads the file. a.mu must be locked.
func (a *authorizer) reload() {
	before := a.contents
	err := a.load()
	if err == nil {
		a.problem = ""
		if !bytes.Equal(before, a.contents) {
			a.log.Info("list of authorized callers reloaded", "file", a.file, "callers", len(a.grants))
		}
		return
	}
	if a.problem == "" {
		a.since = time.Now()
	}
	if a.problem != err.Error() {
		a.problem = err.Error()
		a.log.Warn("list of authorized callers not usable, keeping the previous one", "file", a.file, "error", err)
	}
}

// usable reports whether the file can be used, and if not, since when.
func (a *authorizer) usable() (since time.Time, ok bool) {
	a.current() // reads the file
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.since, a.problem == ""
}

// register adds the metric that says whether the file can be used. If it cannot, the engine
// goes on with the previous list, but it would not start again.
func (a *authorizer) register(r prometheus.Registerer) error {
	if a == nil {
		return nil
	}
	return r.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "jobpolicy_engine_authorized_callers_usable",
		Help: "Whether the list of authorized callers can be used as it stands in its file: 1, or 0 if the one before stays in use.",
	}, func() float64 {
		if _, ok := a.usable(); !ok {
			return 0
		}
		return 1
	}))
}

// check says in /readyz whether the file can be used. It does not fail: calls are answered.
func (a *authorizer) check() probes.Check {
	return probes.Check{
		Name: "authorized-callers",
		Run:  func(context.Context) error { return nil },
		Idle: func() (string, bool) { return "there is no list, everybody who may connect may call", a == nil },
		Note: func() string {
			if since, ok := a.usable(); !ok {
				return "warning: since " + since.UTC().Format(time.RFC3339) + " the list cannot be used, and the one before stays in use; the log says why"
			}
			return fmt.Sprintf("%d listed", len(a.current()))
		},
	}
}

// identity is the identity by which a caller is counted: the first one in the list, or
// unnamed. Without a list it is the primary one. All connections that have it share what
// one caller may have.
func (a *authorizer) identity(ids identities) string {
	if a == nil {
		return ids.primary()
	}
	g := a.current()
	if id, ok := ids.first(func(id string) bool { return g[id] != nil }); ok {
		return id
	}
	return unnamed
}

// authorize returns nil if one of the identities may call the method. Every caller in the
// list may call the methods of other services.
func (a *authorizer) authorize(ids identities, fullMethod string) error {
	if a == nil {
		return nil
	}
	method, listed := strings.CutPrefix(fullMethod, "/"+ServiceName+"/")
	g := a.current()
	named := false
	for _, id := range ids {
		methods, ok := g[id]
		if ok && (!listed || methods[method] || methods[anyMethod]) {
			return nil
		}
		named = named || ok
	}
	why := "is not in the engine's list of authorized callers"
	if named {
		why = "is in the engine's list of authorized callers, but not for this method"
	}
	caller := shown(ids.primary())
	return refusal.Refusal{
		Code: codes.PermissionDenied, Reason: jobpolicyv1.ErrorReason_ERROR_REASON_CALLER_NOT_ALLOWED,
		Text:     fmt.Sprintf("%s may not call %s: it %s", caller, method, why),
		Metadata: map[string]string{"caller": caller, "method": method},
	}.Err()
}
