package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// auditArgs make an API server record the requests of the users in a file below dir,
// when a request is answered or a watch begins.
func auditArgs(dir string, users ...string) (log string, args []string, err error) {
	policy, log := filepath.Join(dir, "audit-policy.json"), filepath.Join(dir, "audit.log")
	text, err := json.Marshal(map[string]any{
		"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": []string{"RequestReceived"},
		"rules": []map[string]any{{"level": "Metadata", "users": users}, {"level": "None"}},
	})
	if err != nil {
		return "", nil, err
	}
	return log, []string{"--audit-policy-file=" + policy, "--audit-log-path=" + log}, os.WriteFile(policy, text, 0o600)
}

// An audit is a list of the requests that users sent to an API server.
type audit struct {
	// used are the rights that requests needed, in the form of grants. A right that is
	// granted only by name ends with the name.
	used map[string]bool
	// refused are the requests that were forbidden.
	refused []string
}

func readAudit(log string) (*audit, error) {
	file, err := os.Open(log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	a := &audit{used: map[string]bool{}}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, fmt.Errorf("%s: %w", log, err)
		}
		a.add(&event)
	}
	return a, lines.Err()
}

func (a *audit) add(event *auditv1.Event) {
	object := event.ObjectRef
	if object == nil {
		return // No object: discovery, health.
	}
	resource := object.Resource
	if object.Subresource != "" {
		resource += "/" + object.Subresource
	}
	right := object.APIGroup + "/" + resource + " " + event.Verb
	if event.ResponseStatus != nil && event.ResponseStatus.Code == 403 && strings.Contains(event.ResponseStatus.Message, "cannot "+event.Verb+" resource") {
		a.refused = append(a.refused, right+" "+object.Namespace+"/"+object.Name+": "+event.ResponseStatus.Message)
		return
	}
	a.used[right] = true
	a.used[right+" "+object.Name] = true
}

// check compares the requests with the granted rights. A right that no request needs
// must be excused by name, with a reason.
func (a *audit) check(granted []string, excused map[string]string) []string {
	problems := slices.Clone(a.refused)
	for _, right := range granted {
		_, known := excused[right]
		switch used := a.used[right]; {
		case !used && !known:
			problems = append(problems, "granted and never used: "+right)
		case used && known:
			problems = append(problems, "excused as never used, and used: "+right)
		}
	}
	for _, right := range slices.Sorted(maps.Keys(excused)) {
		if !slices.Contains(granted, right) {
			problems = append(problems, "excused, and not granted: "+right)
		}
	}
	return problems
}

// namedGrants is grants, with the names that a right is limited to.
func namedGrants(rules []rbacv1.PolicyRule) []string {
	var all []string
	for _, rule := range rules {
		for _, right := range grants([]rbacv1.PolicyRule{rule}) {
			if len(rule.ResourceNames) == 0 {
				all = append(all, right)
			}
			for _, name := range rule.ResourceNames {
				all = append(all, right+" "+name)
			}
		}
	}
	slices.Sort(all)
	return all
}

// notReached are rights that the executor of the shared control plane uses in no test.
var notReached = map[string]string{
	"/pods list":                        "API servers before v1.34, and those under pressure, do not stream lists into watches",
	"/namespaces list":                  "as of pods",
	"batch/jobs list":                   "as of pods",
	"batch/cronjobs list":               "as of pods",
	"batch/jobs/finalizers update":      "no request: admission (OwnerReferencesPermissionEnforcement, where it is on) asks for it when an owner holds up deletions",
	"batch/cronjobs/finalizers update":  "as of Jobs",
	"coordination.k8s.io/leases get":    "one replica, which elects nobody; TestCertificatesRotateUnderLoad does",
	"coordination.k8s.io/leases create": "as get",
	"coordination.k8s.io/leases update": "as get",
}

// byChance are rights that the executor of the shared control plane uses in some runs only.
var byChance = map[string]string{
	"/nodes list": "as listing pods, and also when the API server stops while it answers the first list, which is asked for again after each failure",
}

// checkSharedAudit compares what all tests together made the executor request with its
// role. It is only meaningful after all tests.
func checkSharedAudit(log string, rules []rbacv1.PolicyRule) error {
	a, err := readAudit(log)
	if err != nil {
		return err
	}
	granted := slices.DeleteFunc(grants(rules), func(right string) bool {
		return byChance[right] != "" || strings.HasPrefix(right, "scheduling.k8s.io/") // TestGangs… have a control plane of their own.
	})
	if problems := a.check(granted, notReached); len(problems) > 0 {
		return fmt.Errorf("rights of the executor:\n%s", strings.Join(problems, "\n"))
	}
	return nil
}

func TestAuditFindsExcessAndRefusal(t *testing.T) {
	a := &audit{used: map[string]bool{"/pods get": true}, refused: []string{"/pods delete ns/p: no"}}
	got := a.check([]string{"/pods get", "/pods watch", "/pods list"}, map[string]string{"/pods list": "why", "/pods get": "why", "/x get": "why"})
	want := []string{
		"/pods delete ns/p: no", "excused as never used, and used: /pods get", "granted and never used: /pods watch", "excused, and not granted: /x get",
	}
	if !slices.Equal(got, want) {
		t.Errorf("problems:\n%s", strings.Join(got, "\n"))
	}
}
