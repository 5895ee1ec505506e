package chart

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// An Object is one Kubernetes object as a manifest has it.
type Object map[string]any

// Key names an object: its kind, namespace and name.
func (o Object) Key() string {
	meta, _ := o["metadata"].(map[string]any)
	return strings.Trim(fmt.Sprintf("%v %v/%v", o["kind"], orEmpty(meta["namespace"]), meta["name"]), "/")
}

func orEmpty(v any) any {
	if v == nil {
		return ""
	}
	return v
}

// A Release is how a chart is installed.
type Release struct {
	Name, Namespace string
	Values          map[string]any
}

// Template returns the documents that the chart in dir renders, by the file that
// they stem from. What is empty is left out.
func Template(dir string, r Release) (map[string][]string, error) {
	chart, err := loader.LoadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", dir, err)
	}
	options := common.ReleaseOptions{Name: r.Name, Namespace: r.Namespace, Revision: 1, IsInstall: true}
	values, err := util.ToRenderValues(chart, r.Values, options, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, values)
	if err != nil {
		return nil, err
	}
	documents := map[string][]string{}
	for name, text := range files {
		if base := path.Base(name); strings.HasSuffix(base, ".yaml") {
			documents[base] = split(text)
		}
	}
	return documents, nil
}

// split cuts a stream of YAML documents up, and leaves out those without content.
func split(text string) []string {
	var documents []string
	for document := range strings.SplitSeq("\n"+text, "\n---") {
		document = strings.TrimSpace(document)
		if strings.ContainsFunc(stripComments(document), func(r rune) bool { return r != '\n' }) {
			documents = append(documents, document+"\n")
		}
	}
	return documents
}

func stripComments(document string) string {
	lines := slices.DeleteFunc(strings.Split(document, "\n"), func(line string) bool { return strings.HasPrefix(line, "#") })
	return strings.Join(lines, "\n")
}

// Helm returns the objects that the chart in dir renders.
func Helm(dir string, r Release) ([]Object, error) {
	files, err := Template(dir, r)
	if err != nil {
		return nil, err
	}
	var objects []Object
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, document := range files[name] {
			object := Object{}
			if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// Kustomize returns the objects that kustomize builds of a folder.
func Kustomize(dir string) ([]Object, error) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("kustomize %s: %w", dir, err)
	}
	var objects []Object
	for _, resource := range built.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			return nil, err
		}
		object := Object{}
		if err := yaml.Unmarshal(bytes.TrimSpace(text), &object); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}
