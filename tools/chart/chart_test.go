package chart

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"sigs.k8s.io/yaml"
)

const (
	chartDir     = "../../deploy/chart/jobpolicy"
	kustomizeDir = "../../deploy/kubernetes"
)

func TestLint(t *testing.T) {
	for _, v := range Variants() {
		lint := action.NewLint()
		lint.Strict, lint.Namespace = true, releaseNamespace
		for _, err := range lint.Run([]string{chartDir}, v.Values).Errors {
			t.Errorf("%s: %v", v.Dir, err)
		}
	}
}

// What lies in deploy/kubernetes is what the chart renders today.
func TestManifestsAreCurrent(t *testing.T) {
	for _, v := range Variants() {
		want, err := v.Manifests(chartDir)
		if err != nil {
			t.Fatal(err)
		}
		have, err := os.ReadFile(filepath.Join(kustomizeDir, v.Dir, "jobpolicy.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(have)); diff != "" {
			t.Errorf("%s is not what the chart renders; run make manifests (-chart +file):\n%s", v.Dir, diff)
		}
	}
}

// Kustomize builds the same objects, and the namespace.
func TestHelmAndKustomizeAgree(t *testing.T) {
	for _, v := range Variants() {
		if v.Without != nil {
			continue
		}
		t.Run(v.Dir, func(t *testing.T) {
			namespace := "Namespace /" + v.Release().Namespace
			built := byKey(t)(Kustomize(filepath.Join(kustomizeDir, v.Dir)))
			if built[namespace] == nil {
				t.Errorf("kustomize makes no namespace; it makes %v", slices.Sorted(maps.Keys(built)))
			}
			delete(built, namespace)
			if diff := cmp.Diff(byKey(t)(Helm(chartDir, v.Release())), built); diff != "" {
				t.Errorf("objects differ (-helm +kustomize):\n%s", diff)
			}
		})
	}
}

// A kustomization of one's own, with another namespace and all components, has
// the objects that the chart renders there.
func TestOverlayAgreesWithHelmElsewhere(t *testing.T) {
	const elsewhere = "batch-system"
	values := map[string]any{"image": map[string]any{"repository": "registry.example.com/jobs", "tag": "v1.2.3"}}
	overlay := map[string]any{
		"namespace": elsewhere,
		"resources": []string{"../coexist"},
		"images": []map[string]any{
			{"name": "jobpolicy.dev/jobpolicy-engine", "newName": "registry.example.com/jobs/jobpolicy-engine", "newTag": "v1.2.3"},
			{"name": "jobpolicy.dev/jobpolicy-executor", "newName": "registry.example.com/jobs/jobpolicy-executor", "newTag": "v1.2.3"},
		},
	}
	for _, v := range Variants() {
		if v.IsComponent() {
			overlay["components"] = append(components(overlay), "../"+v.Dir)
			maps.Copy(values, v.Values)
		}
	}
	built := byKey(t)(Kustomize(writeOverlay(t, overlay)))
	delete(built, "Namespace /"+elsewhere)
	rendered := byKey(t)(Helm(chartDir, Release{Name: releaseName, Namespace: elsewhere, Values: values}))
	forgetVersions(built)
	forgetVersions(rendered)
	if diff := cmp.Diff(rendered, built); diff != "" {
		t.Errorf("objects differ (-helm +kustomize):\n%s", diff)
	}
}

func components(overlay map[string]any) []string {
	list, _ := overlay["components"].([]string)
	return list
}

// writeOverlay puts a copy of deploy/kubernetes beside the overlay: kustomize
// takes relative folders only.
func writeOverlay(t *testing.T, overlay map[string]any) string {
	t.Helper()
	top := t.TempDir()
	if err := os.CopyFS(top, os.DirFS(kustomizeDir)); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "overlay")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// forgetVersions removes the label that says which image an object is for: an
// overlay that changes the image leaves it.
func forgetVersions(objects map[string]Object) {
	for _, object := range objects {
		meta := object["metadata"].(map[string]any)
		if labels, ok := meta["labels"].(map[string]any); ok {
			delete(labels, "app.kubernetes.io/version")
		}
	}
}

func byKey(t *testing.T) func([]Object, error) map[string]Object {
	return func(objects []Object, err error) map[string]Object {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]Object{}
		for _, object := range objects {
			if all[object.Key()] != nil {
				t.Errorf("%s is there twice", object.Key())
			}
			all[object.Key()] = object
		}
		return all
	}
}

const crdKey = "CustomResourceDefinition /jobpolicies.jobpolicy.dev"

// Helm keeps the CustomResourceDefinition, because all JobPolicies would go with it. A shadow beside another release has none.
func TestCustomResourceDefinition(t *testing.T) {
	for mode, want := range map[string]bool{"coexist": true, "embedded-replace": true, "shadow": false} {
		crd := byKey(t)(Helm(chartDir, Release{Name: "a", Namespace: "b", Values: map[string]any{"mode": mode}}))[crdKey]
		if (crd != nil) != want || (want && !strings.Contains(fmt.Sprint(crd["metadata"]), "helm.sh/resource-policy:keep")) {
			t.Errorf("mode %s: the chart has %v, want one that is kept: %t", mode, crd["metadata"], want)
		}
	}
	if crd := byKey(t)(Helm(chartDir, Release{Name: "a", Namespace: "b", Values: map[string]any{"crd": false}}))[crdKey]; crd != nil {
		t.Errorf("with crd=false the chart has one: %v", crd["metadata"])
	}
}

// Every name and every selector follows the release, and nothing of another
// release's is named.
func TestAnyNameAndNamespace(t *testing.T) {
	longest := strings.Repeat("r", 53) // the longest that Helm takes
	for name, prefix := range map[string]string{"batch": "batch-jobpolicy", "my-jobpolicy": "my-jobpolicy", longest: longest[:48]} {
		release := Release{Name: name, Namespace: "some-place", Values: map[string]any{
			"networkPolicy": map[string]any{"enabled": true},
			"monitoring":    map[string]any{"podMonitor": true, "alerts": true, "dashboard": true},
		}}
		for key, object := range byKey(t)(Helm(chartDir, release)) {
			if key == crdKey {
				continue // Its name follows from what it defines.
			}
			meta := object["metadata"].(map[string]any)
			if objectName := meta["name"].(string); !strings.HasPrefix(objectName, prefix) || len(objectName) > 63 {
				t.Errorf("release %s: %s has a name that is not of the release", name, key)
			}
			if ns, clusterWide := meta["namespace"], strings.HasPrefix(key, "ClusterRole"); (ns != "some-place") != clusterWide {
				t.Errorf("release %s: %s is in namespace %v", name, key, ns)
			}
			text := fmt.Sprint(object)
			if lease := fmt.Sprintf("absent(leader_election_master_status{job=%q,name=%q})", "jobpolicy", prefix+"-executor"); object["kind"] == "PrometheusRule" && !strings.Contains(text, lease) {
				t.Errorf("release %s: %s does not ask for %s", name, key, lease)
			}
			if name == "batch" && strings.Contains(text, "jobpolicy-system") {
				t.Errorf("%s names the namespace of another release: %s", key, text)
			}
		}
	}
}

// Names that YAML reads as numbers or truths stay names, and each Service has a name that one may have.
func TestNamesThatLookLikeOtherThings(t *testing.T) {
	service := regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)
	values := map[string]any{
		"image":             map[string]any{"pullSecrets": []any{"1"}, "tag": "_" + strings.Repeat("1", 61) + "-beta"},
		"priorityClassName": "1",
		"engine":            map[string]any{"callers": []any{map[string]any{"identity": "cn:1"}}},
		"executor":          map[string]any{"namespaces": []any{"1", "1e5"}, "managedBy": "example.com/executor:", "featureGates": nil},
		"certificates":      map[string]any{"clients": []any{map[string]any{"name": "123", "namespace": "456"}, map[string]any{"name": "on"}}},
		"networkPolicy":     map[string]any{"enabled": true},
		"monitoring":        map[string]any{"podMonitor": true, "alerts": true, "dashboard": true},
	}
	certManager := maps.Clone(values)
	certManager["certificates"] = map[string]any{"mode": "certManager", "clients": []any{map[string]any{"name": "123"}}}
	override := maps.Clone(certManager)
	override["fullnameOverride"] = "true"
	for _, release := range []Release{
		{Name: "1", Namespace: "2", Values: values},
		{Name: "1e5", Namespace: "1e5", Values: certManager},
		{Name: "on", Namespace: "true", Values: override},
		{Name: "v1.2.3", Namespace: "null", Values: values},
		{Name: "1jobpolicy." + strings.Repeat("-", 38) + ".end", Namespace: "2", Values: values},
	} {
		for key, object := range byKey(t)(Helm(chartDir, release)) {
			for _, wrong := range notText(object, "") {
				t.Errorf("release %s in %s: %s: %s", release.Name, release.Namespace, key, wrong)
			}
			name := fmt.Sprint(object["metadata"].(map[string]any)["name"])
			if object["kind"] == "Service" && !service.MatchString(name) {
				t.Errorf("release %s: no Service may be called %s", release.Name, name)
			}
			if callers := fmt.Sprint(object["data"]); strings.Contains(callers, "%!") {
				t.Errorf("release %s: %s: %s", release.Name, key, callers)
			}
		}
	}
}

// labelValue is what the value of a label may be.
var labelValue = regexp.MustCompile(`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`)

// notText lists names, arguments and labels in part of an object that are no text, and labels that are none. A schema has
// fields of these names, and no values.
func notText(part any, path string) []string {
	var wrong []string
	text := func(v any, at string) {
		if s, ok := v.(string); !ok {
			wrong = append(wrong, fmt.Sprintf("%s is %v, a %T", at, v, v))
		} else if strings.Contains(at, "abels.") && (!labelValue.MatchString(s) || len(s) > 63) {
			wrong = append(wrong, fmt.Sprintf("%s cannot be %q", at, s))
		}
	}
	switch part := part.(type) {
	case Object:
		return notText(map[string]any(part), path)
	case map[string]any:
		for name, value := range part {
			if name == "openAPIV3Schema" {
				continue
			}
			at := path + "." + name
			list, _ := value.([]any)
			for i, item := range list {
				if name == "args" || name == "resourceNames" || name == "dnsNames" {
					text(item, fmt.Sprintf("%s[%d]", at, i))
				}
			}
			if slices.Contains([]string{"name", "namespace", "priorityClassName", "commonName", "secretName"}, name) || strings.HasSuffix(path, "abels") {
				text(value, at)
			}
			wrong = append(wrong, notText(value, at)...)
		}
	case []any:
		for i, item := range part {
			wrong = append(wrong, notText(item, fmt.Sprintf("%s[%d]", path, i))...)
		}
	}
	return wrong
}

func TestBadValuesAreRefusedByName(t *testing.T) {
	cases := map[string]struct {
		values map[string]any
		want   string
	}{
		"an unknown mode":                        {map[string]any{"mode": "takeover"}, "at '/mode': value must be one of 'coexist', 'replace', 'embedded', 'embedded-replace'"},
		"an unknown value":                       {map[string]any{"replicas": 2}, "additional properties 'replicas' not allowed"},
		"a namespace that cannot be":             {map[string]any{"executor": map[string]any{"namespaces": []any{"Team_A"}}}, "at '/executor/namespaces/0'"},
		"text for a number":                      {map[string]any{"engine": map[string]any{"replicas": "two"}}, "at '/engine/replicas': got string, want integer"},
		"a flag without dashes":                  {map[string]any{"executor": map[string]any{"extraArgs": []any{"kube-api-qps=100"}}}, "at '/executor/extraArgs/0'"},
		"a group of the cluster without runs":    {map[string]any{"executor": map[string]any{"clusterGroups": map[string]any{"reports": 0}}}, "at '/executor/clusterGroups/reports'"},
		"a group of the cluster with a half run": {map[string]any{"executor": map[string]any{"clusterGroups": map[string]any{"reports": 1.5}}}, "at '/executor/clusterGroups/reports'"},
		"a group of the cluster without a name":  {map[string]any{"executor": map[string]any{"clusterGroups": map[string]any{"": 1}}}, "at '/executor/clusterGroups'"},
		"a gate that is no truth":                {map[string]any{"executor": map[string]any{"featureGates": map[string]any{"WorkloadWithJob": "yes"}}}, "at '/executor/featureGates/WorkloadWithJob': got string, want boolean"},
		"no certificates":                        {map[string]any{"certificates": map[string]any{"mode": "none"}}, "at '/certificates/mode': value must be one of"},
		"a number in env":                        {map[string]any{"env": []any{map[string]any{"name": "A", "value": 4317}}}, "at '/env/0/value': got number, want string"},
		"a client without a name":                {map[string]any{"certificates": map[string]any{"clients": []any{map[string]any{"namespace": "x"}}}}, "missing property 'name'"},
		"an issuer without a name":               {map[string]any{"certificates": map[string]any{"mode": "certManager", "issuerRef": map[string]any{"kind": "ClusterIssuer"}}}, "at '/certificates/issuerRef': properties 'name' required, if 'kind' exists"},
		"a method that is not there":             {map[string]any{"engine": map[string]any{"callers": []any{map[string]any{"identity": "cn:a", "methods": []any{"Decidejob"}}}}}, "at '/engine/callers/0/methods/0': value must be one of '*', 'DecideJob'"},
		"a label that selects pods":              {map[string]any{"podLabels": map[string]any{"app.kubernetes.io/component": "x"}}, "at '/podLabels/app.kubernetes.io~1component': false schema"},
		"a label that objects have":              {map[string]any{"monitoring": map[string]any{"labels": map[string]any{"app.kubernetes.io/version": "x"}}}, "at '/monitoring/labels/app.kubernetes.io~1version': false schema"},
		"no leader election":                     {map[string]any{"executor": map[string]any{"replicas": 1, "extraArgs": []any{"--leader-elect=false"}}}, "executor.extraArgs: --leader-elect=false is not possible"},
		"some namespaces in place of the built-in controllers": {
			map[string]any{"mode": "replace", "executor": map[string]any{"namespaces": []any{"a"}}},
			"executor.namespaces is not possible in mode replace",
		},
		"some namespaces in place of the built-in controllers, with the engine inside": {
			map[string]any{"mode": "embedded-replace", "executor": map[string]any{"namespaces": []any{"a"}}},
			"executor.namespaces is not possible in mode embedded-replace",
		},
		"clients with one Secret": {
			map[string]any{"certificates": map[string]any{"clients": []any{map[string]any{"name": "a"}, map[string]any{"name": "a", "namespace": releaseNamespace}}}},
			"certificates.clients: two named a would have the same Secret jobpolicy-client-a in namespace " + releaseNamespace,
		},
		"clients of one name, with cert-manager": {
			map[string]any{"certificates": map[string]any{"mode": "certManager", "clients": []any{map[string]any{"name": "a", "namespace": "b"}, map[string]any{"name": "a", "namespace": "c"}}}},
			"certificates.clients: two named a would have the same Secret jobpolicy-client-a in namespace " + releaseNamespace,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Helm(chartDir, Release{Name: releaseName, Namespace: releaseNamespace, Values: tc.values})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// The engine refuses a list that names a method it does not have, so the values name no other one.
func TestMethodsOfCallersAreThoseOfTheContract(t *testing.T) {
	contract, err := os.ReadFile("../../proto/jobpolicy/v1/policy_service.proto")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"*"}
	for _, match := range regexp.MustCompile(`(?m)^  rpc (\w+)\(`).FindAllStringSubmatch(string(contract), -1) {
		want = append(want, match[1])
	}
	text, err := os.ReadFile(filepath.Join(chartDir, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Definitions struct{ Method struct{ Enum []string } }
	}
	if err := yaml.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, schema.Definitions.Method.Enum); diff != "" {
		t.Errorf("methods (-policy_service.proto +values.schema.json):\n%s", diff)
	}
}

// What certManager keeps in one Secret, selfManaged keeps in one for each namespace.
func TestClientsOfOneNameInTwoNamespaces(t *testing.T) {
	clients := []any{map[string]any{"name": "a", "namespace": "b"}, map[string]any{"name": "a", "namespace": "c"}}
	values := map[string]any{"certificates": map[string]any{"clients": clients}}
	objects := byKey(t)(Helm(chartDir, Release{Name: releaseName, Namespace: releaseNamespace, Values: values}))
	for _, key := range []string{"Secret b/jobpolicy-client-a", "Secret c/jobpolicy-client-a"} {
		if objects[key] == nil {
			t.Errorf("there is no %s", key)
		}
	}
}

// Without an engine of its own there is nothing of it, and nothing to prove.
func TestEmbeddedIsTheSmallestInstall(t *testing.T) {
	want := []string{
		"ClusterRole /jobpolicy-executor", "ClusterRoleBinding /jobpolicy-executor", crdKey, "Deployment jobpolicy-system/jobpolicy-executor",
		"Lease jobpolicy-system/jobpolicy-executor", "PodDisruptionBudget jobpolicy-system/jobpolicy-executor", "Role jobpolicy-system/jobpolicy-executor",
		"RoleBinding jobpolicy-system/jobpolicy-executor", "ServiceAccount jobpolicy-system/jobpolicy-executor",
	}
	values := map[string]any{"mode": "embedded"}
	objects := byKey(t)(Helm(chartDir, Release{Name: releaseName, Namespace: releaseNamespace, Values: values}))
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(objects))); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	delete(objects, crdKey) // Its descriptions speak of them.
	if text := fmt.Sprint(objects); strings.Contains(text, "secret") {
		t.Errorf("an embedded install names Secrets: %s", text)
	}
}

// Each group of the cluster is a flag of the executor, whatever its name looks like, and takes no rights.
func TestGroupsOfTheCluster(t *testing.T) {
	render := func(groups map[string]any) map[string]Object {
		return byKey(t)(Helm(chartDir, Release{Name: releaseName, Namespace: releaseNamespace, Values: map[string]any{"executor": map[string]any{"clusterGroups": groups}}}))
	}
	key := "Deployment " + releaseNamespace + "/jobpolicy-executor"
	without, with := render(nil), render(map[string]any{"reports": 3, "a: b": 10000})
	args := fmt.Sprint(with[key])
	for _, want := range []string{" --cluster-group=reports=3 ", " --cluster-group=a: b=10000 "} {
		if !strings.Contains(args, want) {
			t.Errorf("no%sin %s", want, args)
		}
	}
	if strings.Contains(fmt.Sprint(without[key]), "cluster-group") {
		t.Errorf("a group that nobody wants: %v", without[key])
	}
	delete(with, key)
	delete(without, key)
	if diff := cmp.Diff(without, with); diff != "" {
		t.Errorf("other objects (-without +with):\n%s", diff)
	}
}

// The right to read nodes comes with executor.readNodes alone, in the cluster also for an executor of some namespaces, and
// changes nothing else.
func TestTheRightToReadNodes(t *testing.T) {
	for name, namespaces := range map[string][]any{"the cluster": {}, "some namespaces": {"team-a"}} {
		t.Run(name, func(t *testing.T) {
			render := func(reads bool) map[string]Object {
				values := map[string]any{"executor": map[string]any{"namespaces": namespaces, "readNodes": reads}}
				return byKey(t)(Helm(chartDir, Release{Name: releaseName, Namespace: releaseNamespace, Values: values}))
			}
			without, with := render(false), render(true)
			if text := fmt.Sprint(without["ClusterRole /jobpolicy-executor"]); strings.Contains(text, "nodes") {
				t.Errorf("a right on nodes that nobody wants: %s", text)
			}
			role, binding := with["ClusterRole /jobpolicy-executor-nodes"], with["ClusterRoleBinding /jobpolicy-executor-nodes"]
			want := []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"nodes"}, "verbs": []any{"list", "watch"}}}
			if diff := cmp.Diff(want, role["rules"]); diff != "" {
				t.Errorf("rights (-want +got):\n%s", diff)
			}
			if text := fmt.Sprint(binding); !strings.Contains(text, "name:jobpolicy-executor-nodes]") || !strings.Contains(text, "kind:ServiceAccount name:jobpolicy-executor namespace:"+releaseNamespace) {
				t.Errorf("the binding is %s", text)
			}
			delete(with, "ClusterRole /jobpolicy-executor-nodes")
			delete(with, "ClusterRoleBinding /jobpolicy-executor-nodes")
			if diff := cmp.Diff(without, with); diff != "" {
				t.Errorf("other objects (-without +with):\n%s", diff)
			}
		})
	}
}

// Rights on gangs come with the gate alone.
func TestGangRightsComeWithTheGate(t *testing.T) {
	for _, on := range []bool{false, true} {
		values := map[string]any{"executor": map[string]any{"featureGates": map[string]any{"WorkloadWithJob": on}}}
		objects := byKey(t)(Helm(chartDir, Release{Name: releaseName, Namespace: releaseNamespace, Values: values}))
		if has := strings.Contains(fmt.Sprint(objects["ClusterRole /jobpolicy-executor"]), "podgroups"); has != on {
			t.Errorf("with the gate %v, rights on podgroups: %v", on, has)
		}
	}
}

// The shadow takes the values of the release that it precedes. It does not start with the gate of gangs.
func TestTheShadowLeavesTheGateOfGangsOut(t *testing.T) {
	gates := map[string]any{"WorkloadWithJob": true, "MutableSchedulingDirectivesForSuspendedJobs": false}
	values := map[string]any{"mode": "shadow", "executor": map[string]any{"featureGates": gates}}
	objects := byKey(t)(Helm(chartDir, Release{Name: releaseName, Namespace: releaseNamespace, Values: values}))
	executor := fmt.Sprint(objects["Deployment "+releaseNamespace+"/jobpolicy-executor"])
	if strings.Contains(executor, "WorkloadWithJob") {
		t.Errorf("the shadow has the gate: %s", executor)
	}
	if !strings.Contains(executor, "--feature-gates=MutableSchedulingDirectivesForSuspendedJobs=false") {
		t.Errorf("the shadow lacks the other gate: %s", executor)
	}
}

// The pods run as the user that the values name, or as the one that the cluster chooses.
func TestUserOfThePods(t *testing.T) {
	for _, user := range []any{nil, int64(1234)} {
		objects := byKey(t)(Helm(chartDir, Release{Name: releaseName, Namespace: releaseNamespace, Values: map[string]any{"runAsUser": user}}))
		for _, component := range []string{"engine", "executor"} {
			var context any = map[string]any(objects["Deployment "+releaseNamespace+"/jobpolicy-"+component])
			for _, key := range []string{"spec", "template", "spec", "securityContext"} {
				context = context.(map[string]any)[key]
			}
			fields := context.(map[string]any)
			if fields["runAsNonRoot"] != true {
				t.Errorf("%s may run as root: %v", component, fields)
			}
			for _, field := range []string{"runAsUser", "runAsGroup", "fsGroup"} {
				if got := fields[field]; fmt.Sprint(got) != fmt.Sprint(user) {
					t.Errorf("runAsUser %v, %s: %s %v", user, component, field, got)
				}
			}
		}
	}
}

// A release in mode shadow has no leader, so the alert for a missing one would always fire.
func TestShadowHasItsOwnAlertOnly(t *testing.T) {
	values := map[string]any{"mode": "shadow", "monitoring": map[string]any{"alerts": true}}
	objects := byKey(t)(Helm(chartDir, Release{Name: releaseName, Namespace: releaseNamespace, Values: values}))
	rule, _ := objects["PrometheusRule "+releaseNamespace+"/jobpolicy"]["spec"].(map[string]any)
	var alerts []string
	for _, group := range rule["groups"].([]any) {
		for _, rule := range group.(map[string]any)["rules"].([]any) {
			alerts = append(alerts, fmt.Sprint(rule.(map[string]any)["alert"]))
		}
	}
	if diff := cmp.Diff([]string{"JobpolicyShadowDifference"}, alerts); diff != "" {
		t.Errorf("alerts in mode shadow (-want +got):\n%s", diff)
	}
}

// The shadow is installed beside another mode, so it has no object of that mode.
func TestTheShadowReplacesNothing(t *testing.T) {
	shadow := byKey(t)(Kustomize(filepath.Join(kustomizeDir, "shadow")))
	for _, v := range Variants() {
		if v.IsComponent() || v.Dir == "shadow" {
			continue
		}
		for key := range byKey(t)(Kustomize(filepath.Join(kustomizeDir, v.Dir))) {
			if shadow[key] != nil {
				t.Errorf("%s is in shadow and in %s: to apply one takes it from the other", key, v.Dir)
			}
		}
	}
}

func TestVersionsAgree(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartDir, "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var chart struct{ Version, AppVersion string }
	if err := yaml.Unmarshal(text, &chart); err != nil {
		t.Fatal(err)
	}
	if chart.AppVersion != "v"+chart.Version {
		t.Errorf("Chart.yaml: appVersion %s, want v and version %s", chart.AppVersion, chart.Version)
	}
}

// With executor.namespaces the executor gets in each of them the rights that it otherwise has
// in the cluster, but to list and watch namespaces, and none in the cluster.
func TestRolesOfNamespaces(t *testing.T) {
	pilot := map[string]any{"executor": map[string]any{"namespaces": []any{"team-a", "team-b"}}}
	rendered := byKey(t)(Helm(chartDir, Release{Name: releaseName, Namespace: releaseNamespace, Values: pilot}))
	whole := byKey(t)(Helm(chartDir, Release{Name: releaseName, Namespace: releaseNamespace}))
	want := whole["ClusterRole /jobpolicy-executor"]["rules"].([]any)
	for _, rule := range want {
		if rule := rule.(map[string]any); fmt.Sprint(rule["resources"]) == "[namespaces]" {
			rule["verbs"] = []any{"get"}
		}
	}
	for _, namespace := range []string{"team-a", "team-b"} {
		if diff := cmp.Diff(want, rendered["Role "+namespace+"/jobpolicy-executor-jobs"]["rules"]); diff != "" {
			t.Errorf("rights in %s (-want +got):\n%s", namespace, diff)
		}
		if rendered["RoleBinding "+namespace+"/jobpolicy-executor-jobs"] == nil {
			t.Errorf("no binding in %s", namespace)
		}
	}
	for key, object := range rendered {
		if strings.HasPrefix(key, "ClusterRole") {
			t.Errorf("there is %s", key)
		}
		if key == "Deployment jobpolicy-system/jobpolicy-executor" && !strings.Contains(fmt.Sprint(object), "--namespaces=team-a,team-b") {
			t.Errorf("the executor watches all namespaces: %v", object)
		}
	}
}
