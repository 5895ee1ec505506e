package chart

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The releases whose objects the kustomizations have. The shadow stands beside another mode, in a
// namespace of its own.
const (
	releaseName      = "jobpolicy"
	releaseNamespace = "jobpolicy-system"
	shadowName       = "jobpolicy-shadow"
	shadowNamespace  = "jobpolicy-shadow"
)

// A Variant is a folder of kustomize that has the objects of the chart with some
// values.
type Variant struct {
	// Dir is the folder, below deploy/kubernetes.
	Dir string
	// Values of the chart.
	Values map[string]any
	// Name and Namespace of the release; empty: jobpolicy in jobpolicy-system.
	Name, Namespace string
	// Without, if set, are values whose objects are left out: the folder then has
	// only what Values add to them.
	Without map[string]any
}

// Variants are all of them.
func Variants() []Variant {
	mode := func(mode, certificates string) map[string]any {
		return map[string]any{"mode": mode, "certificates": map[string]any{"mode": certificates}}
	}
	on := func(section string, values map[string]any) map[string]any { return map[string]any{section: values} }
	base := map[string]any{}
	return []Variant{
		{Dir: "crd", Values: base, Without: map[string]any{"crd": false}},
		{Dir: "coexist", Values: mode("coexist", "selfManaged")},
		{Dir: "replace", Values: mode("replace", "selfManaged")},
		{Dir: "embedded", Values: mode("embedded", "selfManaged")},
		{Dir: "embedded-replace", Values: mode("embedded-replace", "selfManaged")},
		{Dir: "shadow", Values: mode("shadow", "selfManaged"), Name: shadowName, Namespace: shadowNamespace},
		{Dir: "coexist-cert-manager", Values: mode("coexist", "certManager")},
		{Dir: "replace-cert-manager", Values: mode("replace", "certManager")},
		{Dir: "components/network-policy", Values: on("networkPolicy", map[string]any{"enabled": true}), Without: base},
		{Dir: "components/monitoring", Values: on("monitoring", map[string]any{"podMonitor": true, "alerts": true, "dashboard": true}), Without: base},
	}
}

// IsComponent reports whether the folder adds to others and cannot be applied by
// itself.
func (v Variant) IsComponent() bool { return strings.HasPrefix(v.Dir, "components/") }

// crdFile is the template of the CustomResourceDefinition. One folder has it, for all the others.
const crdFile = "crd.yaml"

// Release is how the chart is installed that has the same objects.
func (v Variant) Release() Release {
	return Release{Name: cmp.Or(v.Name, releaseName), Namespace: cmp.Or(v.Namespace, releaseNamespace), Values: v.Values}
}

// Manifests are the documents of the folder's manifest, with their comments.
func (v Variant) Manifests(chartDir string) (string, error) {
	files, err := Template(chartDir, v.Release())
	if err != nil {
		return "", err
	}
	var others map[string][]string
	if v.Without != nil {
		if others, err = Template(chartDir, Release{Name: releaseName, Namespace: releaseNamespace, Values: v.Without}); err != nil {
			return "", err
		}
	}
	var documents []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name == crdFile && v.Without == nil {
			continue
		}
		for _, document := range files[name] {
			if !slices.Contains(others[name], document) {
				documents = append(documents, document)
			}
		}
	}
	head := fmt.Sprintf("# Made of the Helm chart by `make manifests`; do not edit. Values: %s\n", describe(v.Values))
	return head + strings.Join(documents, "---\n"), nil
}

// describe writes values as helm's --set takes them.
func describe(values map[string]any) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		section, nested := values[name].(map[string]any)
		if !nested {
			parts = append(parts, fmt.Sprintf("%s=%v", name, values[name]))
			continue
		}
		for _, inner := range slices.Sorted(maps.Keys(section)) {
			parts = append(parts, fmt.Sprintf("%s.%s=%v", name, inner, section[inner]))
		}
	}
	return strings.Join(parts, ",")
}
