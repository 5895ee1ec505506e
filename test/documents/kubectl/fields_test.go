package kubectl

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"jobpolicy.dev/deploy/local/must"
)

// fieldsLeftOut are types that no object of the test has, and why.
var fieldsLeftOut = map[string]string{
	"ManagedFieldsEntry":            "the API server writes it",
	"FieldsV1":                      "the API server writes it",
	"EphemeralContainer":            "a pod template must not have one",
	"EphemeralContainerCommon":      "a pod template must not have one",
	"WindowsSecurityContextOptions": "the documentation says that check does not know options for Windows",
	"EvictionResponder":             "off by default; the API server drops it",
	"PodSchedulingGroup":            "its only field is tried by the edits of spec.template.spec.schedulingGroup",
	"JobStatus":                     "the API server empties it",
	"JobCondition":                  "part of the status",
	"UncountedTerminatedPods":       "part of the status",
	"CronJobStatus":                 "the API server empties it",
	"ObjectReference":               "part of the status",
}

// A changed is an object that differs from one that is fine.
type changed struct {
	// what names the field, or the fields, by type: Container.image.
	what   string
	object map[string]any
}

func (c changed) json(t *testing.T) string {
	t.Helper()
	data, err := json.Marshal(c.object)
	must.Succeed(t, err)
	return string(data)
}

// An edit replaces a value of an object; nil removes it.
type edit struct {
	what  string
	path  []any
	value any
}

// removed stands for a field that is not there.
type removed struct{}

// Whatever value a field has, alone or together with that of another field, check finds an
// error exactly if the API server's own strategies refuse the object, the Job that a CronJob
// would create, or the first pod. testdata/differences.txt lists the fields for which that is
// not so, each with its reason.
func TestCheckAgreesAboutEveryField(t *testing.T) {
	objects := oneVolumeEach(readObjects(t, "testdata/fields.yaml"))
	covered := map[string]bool{}
	var all []changed
	random := rand.New(rand.NewPCG(1, 2))
	tried := map[string]int{}
	for _, object := range objects {
		edits := editsOf(kindOf(object), object, nil, covered)
		random.Shuffle(len(edits), func(i, k int) { edits[i], edits[k] = edits[k], edits[i] })
		all = append(all, changed{what: "nothing", object: object})
		for _, e := range edits {
			if _, gone := e.value.(removed); gone || tried[e.what] < values {
				tried[e.what]++
				all = append(all, changed{e.what, apply(object, e)})
			}
		}
		for range pairs {
			a, b := edits[random.IntN(len(edits))], edits[random.IntN(len(edits))]
			if !within(a.path, b.path) && !within(b.path, a.path) {
				all = append(all, changed{a.what + " with " + b.what, apply(apply(object, a), b)})
			}
		}
	}
	// spec.scheduling is off by default; the API server drops it.
	scheduling := typesIn(reflect.TypeFor[batchv1.JobSchedulingConfiguration]())
	for name := range typesIn(reflect.TypeFor[batchv1.Job](), reflect.TypeFor[batchv1.CronJob]()) {
		if !covered[name] && fieldsLeftOut[name] == "" && !scheduling[name] {
			t.Errorf("no object of testdata/fields.yaml has a %s", name)
		}
	}
	known := readDifferences(t)
	for what, differs := range compareAll(t, append(all, named()...), known) {
		if !differs {
			t.Errorf("testdata/differences.txt: nothing differs about %s", what)
		}
	}
}

// values is how many values of each field are tried, and pairs how many pairs of edits of each
// object. There are many more; other seeds try others.
const (
	values = 12
	pairs  = 25
)

// The same of all that the repository shows as an example, with one of its fields changed.
func TestCheckAgreesAboutExamples(t *testing.T) {
	files, err := filepath.Glob("../../../deploy/examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	var all []changed
	random := rand.New(rand.NewPCG(3, 4))
	for _, file := range files {
		for _, object := range readObjects(t, file) {
			edits := editsOf(kindOf(object), object, nil, map[string]bool{})
			for range pairs {
				e := edits[random.IntN(len(edits))]
				all = append(all, changed{e.what, apply(object, e)})
			}
		}
	}
	compareAll(t, all, readDifferences(t))
}

// readObjects reads the Jobs and CronJobs of a file.
func readObjects(t *testing.T, file string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(file)
	must.Succeed(t, err)
	var objects []map[string]any
	for doc := range strings.SplitSeq(string(data), "\n---\n") {
		var object map[string]any
		must.Succeed(t, yaml.Unmarshal([]byte(doc), &object))
		if kind := object["kind"]; kind == "Job" || kind == "CronJob" {
			objects = append(objects, object)
		}
	}
	return objects
}

// oneVolumeEach makes of a Job whose containers mount nothing one Job for each of its volumes:
// small objects are read faster.
func oneVolumeEach(objects []map[string]any) []map[string]any {
	var all []map[string]any
	at := []any{"spec", "template", "spec", "volumes"}
	for _, object := range objects {
		volumes, _, _ := unstructured.NestedSlice(object, "spec", "template", "spec", "volumes")
		if name, _, _ := unstructured.NestedString(object, "metadata", "name"); !strings.HasSuffix(name, "volumes") {
			all = append(all, object)
			continue
		}
		for _, volume := range volumes {
			all = append(all, apply(object, edit{path: at, value: []any{volume}}))
		}
	}
	return all
}

func kindOf(object map[string]any) reflect.Type {
	if object["kind"] == "CronJob" {
		return reflect.TypeFor[batchv1.CronJob]()
	}
	return reflect.TypeFor[batchv1.Job]()
}

// named are Jobs and CronJobs with names, labels and selectors that fit, or do not.
func named() []changed {
	var all []changed
	add := func(what string, object map[string]any, edits ...edit) {
		for _, e := range edits {
			object = apply(object, e)
		}
		all = append(all, changed{what, object})
	}
	job := map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{}, "spec": map[string]any{"template": map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "x"}},
		"spec":     map[string]any{"restartPolicy": "Never", "containers": []any{map[string]any{"name": "main", "image": "busybox"}}},
	}}}
	cron := map[string]any{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": map[string]any{}, "spec": map[string]any{"schedule": "@daily", "jobTemplate": map[string]any{"spec": job["spec"]}}}
	for _, base := range []struct {
		object map[string]any
		spec   []any
	}{{job, []any{"spec"}}, {cron, []any{"spec", "jobTemplate", "spec"}}} {
		in := func(path ...any) []any { return append(slices.Clone(base.spec), path...) }
		for _, name := range []string{"a", "a.b", "a.b.c", "-a", "a-", "A", "x.", strings.Repeat("n", 47), strings.Repeat("n", 48), strings.Repeat("n", 51), strings.Repeat("n", 52), strings.Repeat("n", 53), strings.Repeat("n", 57), strings.Repeat("n", 58), strings.Repeat("n", 60), strings.Repeat("n", 61), strings.Repeat("n", 62), strings.Repeat("n", 63), strings.Repeat("n", 64), strings.Repeat("n", 80) + ".b", strings.Repeat("n", 260)} {
			for _, field := range []string{"name", "generateName"} {
				metadata := edit{path: []any{"metadata", field}, value: name}
				add("a name", base.object, metadata)
				for _, completions := range []int{0, 1, 11, 1000} {
					add("a name of an Indexed Job", base.object, metadata, edit{path: in("completions"), value: completions}, edit{path: in("completionMode"), value: "Indexed"})
				}
				add("a name with a manual selector", base.object, metadata, edit{path: in("manualSelector"), value: true},
					edit{path: in("selector"), value: map[string]any{"matchLabels": map[string]any{"app": "x"}}})
			}
		}
		for _, label := range []string{"job-name", "controller-uid", "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"} {
			for _, value := range []string{"", "a", "b", "ca23a7c2-e6a8-4818-9375-f9efd4c503ca"} {
				name := edit{path: []any{"metadata", "name"}, value: "a"}
				own := edit{path: in("template", "metadata", "labels"), value: map[string]any{"app": "x", label: value}}
				add("a generated label", base.object, name, own)
				for _, manual := range []any{nil, false, true} {
					for _, selector := range []any{map[string]any{}, map[string]any{"matchLabels": map[string]any{label: value}}, map[string]any{"matchLabels": map[string]any{"app": "x"}}} {
						choice := []edit{name, {path: in("selector"), value: selector}, {path: in("manualSelector"), value: manual}}
						add("a selector", base.object, choice...)
						add("a selector with a generated label", base.object, append(choice, own)...)
					}
				}
			}
		}
	}
	return all
}

// editsOf are the edits of all fields of a value. It notes down the types that it has.
func editsOf(t reflect.Type, value any, path []any, covered map[string]bool) []edit {
	switch {
	case t.Kind() == reflect.Pointer:
		return editsOf(t.Elem(), value, path, covered)
	case t.Kind() == reflect.Slice:
		var all []edit
		list, _ := value.([]any)
		for i, element := range list {
			all = append(all, editsOf(t.Elem(), element, append(slices.Clone(path), i), covered)...)
		}
		return all
	case t.Kind() != reflect.Struct || isScalar(t):
		return nil
	}
	covered[t.Name()] = true
	fields, _ := value.(map[string]any)
	var all []edit
	for _, f := range fieldsIn(t) {
		if f.name == "status" || f.name == "kind" && len(path) == 0 || f.name == "apiVersion" && len(path) == 0 {
			continue
		}
		at, what := append(slices.Clone(path), f.name), t.Name()+"."+f.name
		current, there := fields[f.name]
		for _, v := range valuesFor(f.Type, what, current) {
			all = append(all, edit{what, at, v})
		}
		if there {
			all = append(all, edit{what, at, removed{}})
			all = append(all, editsOf(f.Type, current, at, covered)...)
		}
	}
	return all
}

type jsonField struct {
	reflect.StructField
	name string
}

// fieldsIn are the fields of a struct as JSON has them.
func fieldsIn(t reflect.Type) []jsonField {
	var all []jsonField
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			all = append(all, fieldsIn(f.Type)...)
		case name != "" && name != "-":
			all = append(all, jsonField{f, name})
		}
	}
	return all
}

func isScalar(t reflect.Type) bool {
	return t == reflect.TypeFor[resource.Quantity]() || t == reflect.TypeFor[intstr.IntOrString]() || t == reflect.TypeFor[metav1.Time]()
}

// typesIn are the names of all structs in some types.
func typesIn(types ...reflect.Type) map[string]bool {
	all := map[string]bool{}
	var visit func(t reflect.Type)
	visit = func(t reflect.Type) {
		switch {
		case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice:
			visit(t.Elem())
		case t.Kind() != reflect.Struct || isScalar(t) || all[t.Name()]:
		default:
			all[t.Name()] = true
			for _, f := range fieldsIn(t) {
				visit(f.Type)
			}
		}
	}
	for _, t := range types {
		visit(t)
	}
	return all
}

// texts are values for texts. Some have a form that a field asks for, some have not.
var texts = []any{
	"", "a", "A", "a.b", "a/b", "a_b", "a b", "a ", "-a", "a=b", "..a", "a/../b", "/a", "1", "1.2.3.4", "01.2.3.4", "a-", "main",
	strings.Repeat("a", 16), strings.Repeat("a", 64), strings.Repeat("a", 254), 5,
}

// rareTexts are values that only a few fields take. Each field gets some of them.
var rareTexts = []any{
	"a/b/c", " a", "../a", "*", "Ü", "0", "-1", "::1", "metadata.labels['a']", "metadata.annotations['A b']", "spec.nodeName", "metadata.labels", "limits.cpu", "requests.hugepages-2Mi", "limits.storage",
	"0-1", "3-1", "1,1", "@daily", "* * * * *", "TZ=UTC * * * * *", "Local", "UTC", strings.Repeat("a", 15), strings.Repeat("a", 63), "a." + strings.Repeat("b", 70), "example.com/" + strings.Repeat("a", 64),
}

// words are values for enumerations: those of one are wrong for another.
var words = []any{
	"", "x", "always", "Always", "Never", "OnFailure", "IfNotPresent", "In", "NotIn", "Exists", "DoesNotExist", "Equal", "Gt", "Lt", "Localhost", "RuntimeDefault", "Unconfined", "NoSchedule", "NoExecute",
	"TCP", "UDP", "HTTP", "HTTPS", "None", "Bidirectional", "HostToContainer", "Default", "Unmasked", "Failed", "TerminatingOrFailed", "Indexed", "NonIndexed", "FailJob", "FailIndex", "Ignore", "Count",
	"Restart", "RestartAllContainers", "RestartContainer", "NotRequired", "cpu", "memory", "File", "Forbid", "Replace", "True", "Enabled", "IfPossible", "Strict", "Recursive", "MountOption", "OnRootMismatch",
	"ReadWriteOnce", "ReadWriteOncePod", "Block", "DoNotSchedule", "ScheduleAnyway", "Honor", "windows", "Shared", "Dedicated", "SIGTERM", "SIGHUP", "ClusterFirst", "PreemptLowerPriority",
	strings.Repeat("a", 64), "a b", "example.com/a", 5,
}

// some are a few of many values, others for each name.
func some(values []any, n int, name string) []any {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name))
	var all []any
	for _, i := range rand.New(rand.NewPCG(hash.Sum64(), 5)).Perm(len(values))[:n] {
		all = append(all, values[i])
	}
	return all
}

// valuesFor are values for a field: right and wrong ones. current is the value that it has.
func valuesFor(t reflect.Type, name string, current any) []any {
	switch {
	case t.Kind() == reflect.Pointer:
		return append(valuesFor(t.Elem(), name, current), nil)
	case t == reflect.TypeFor[resource.Quantity]():
		return []any{"-1", "0", "1", "1m", "1500m", "3Mi", "1Ei", "x", ""}
	case t == reflect.TypeFor[intstr.IntOrString]():
		return []any{-1, 0, 1, 65535, 65536, "", "http", "8080", "Bad_Name", strings.Repeat("a", 16)}
	case t == reflect.TypeFor[metav1.Time]():
		return []any{"2026-01-01T00:00:00Z", "x"}
	}
	switch t.Kind() {
	case reflect.String:
		if t == reflect.TypeFor[string]() {
			return slices.Concat(texts, some(rareTexts, 8, name))
		}
		return slices.Concat(words[:3], some(words, 25, name))
	case reflect.Bool:
		return []any{true, false, "x"}
	case reflect.Int32, reflect.Int64:
		return []any{-1, 0, 1, 5, 256, 512, 599, 65536, 100_001, 1<<31 - 1, int64(1) << 31, int64(1)<<32 + 1, "x"}
	case reflect.Map:
		return mapsFor(t)
	case reflect.Slice:
		return append(listsFor(t, name, current), "x")
	}
	return []any{map[string]any{}, "x"}
}

func mapsFor(t reflect.Type) []any {
	if t.Elem() == reflect.TypeFor[resource.Quantity]() {
		var all []any
		for _, name := range []string{"cpu", "memory", "storage", "cpus", "hugepages-2Mi", "hugepages-x", "example.com/gpu", "kubernetes.io/x", "requests.example.com/x", "a b", strings.Repeat("a", 60) + ".b/" + strings.Repeat("c", 60)} {
			for _, value := range []any{"-1", "1500m", "4Mi"} {
				all = append(all, map[string]any{name: value})
			}
		}
		return append(all, map[string]any{}, map[string]any{"cpu": "1", "hugepages-2Mi": "3Mi"}, map[string]any{"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "4Mi"})
	}
	all := []any{map[string]any{}, map[string]any{"a": 5}, map[string]any{"kubernetes.io/a": "b"}}
	for _, key := range []string{"a b", "", "example.com/a", strings.Repeat("a", 64), "job-name"} {
		all = append(all, map[string]any{key: "b"})
	}
	for _, value := range []string{"", "a b", strings.Repeat("b", 64)} {
		all = append(all, map[string]any{"a": value})
	}
	return all
}

// listsFor are lists: empty, with an empty element, and the present ones twice and often.
func listsFor(t reflect.Type, name string, current any) []any {
	all := []any{[]any{}}
	var scalars []any
	switch t.Elem().Kind() {
	case reflect.Struct:
		all = append(all, []any{map[string]any{}})
	case reflect.String, reflect.Int32, reflect.Int64:
		scalars = valuesFor(t.Elem(), name, nil)
	}
	for i, v := range scalars {
		all = append(all, []any{v})
		if i%8 == 7 {
			all = append(all, []any{v, v}, []any{scalars[i-1], v})
		}
	}
	list, _ := current.([]any)
	if len(list) > 0 {
		all = append(all, append(slices.Clone(list), list[0]), slices.Repeat(list[:1], 21))
		if len(scalars) > 0 {
			all = append(all, slices.Repeat(list[:1], 256))
		}
		backwards := slices.Clone(list)
		slices.Reverse(backwards)
		all = append(all, backwards)
	}
	return all
}

// apply returns a copy of an object with an edit.
func apply(object map[string]any, e edit) map[string]any {
	return applied(object, e.path, e.value).(map[string]any)
}

func applied(node any, path []any, value any) any {
	if len(path) == 0 {
		return value
	}
	if i, ok := path[0].(int); ok {
		list := slices.Clone(node.([]any))
		list[i] = applied(list[i], path[1:], value)
		return list
	}
	fields, _ := node.(map[string]any)
	if fields = maps.Clone(fields); fields == nil {
		fields = map[string]any{}
	}
	name := path[0].(string)
	if _, gone := value.(removed); gone && len(path) == 1 {
		delete(fields, name)
		return fields
	}
	fields[name] = applied(fields[name], path[1:], value)
	return fields
}

// within reports whether a path leads to a place in another one.
func within(inner, outer []any) bool {
	return len(inner) >= len(outer) && slices.Equal(inner[:len(outer)], outer)
}

// compareAll holds check against the API server for many objects. It sets in known about which
// fields they differ.
func compareAll(t *testing.T, all []changed, known map[string]bool) map[string]bool {
	t.Helper()
	docs := make([]string, len(all))
	for i, c := range all {
		docs[i] = c.json(t)
	}
	file := filepath.Join(t.TempDir(), "changed.yaml")
	must.Succeed(t, os.WriteFile(file, []byte(strings.Join(docs, "\n---\n")+"\n"), 0o600))
	wrong := linesWithErrors(t, file)
	refused, examples := 0, map[string]string{}
	for i, c := range all {
		problems := refuseAll(t, docs[i])
		if len(problems) > 0 {
			refused++
		}
		says := wrong[2*i+1]
		if (len(problems) > 0) == (says != "") {
			continue
		}
		expected := false
		for what := range strings.SplitSeq(c.what, " with ") {
			if _, listed := known[what]; listed {
				expected, known[what] = true, true
			}
		}
		if !expected {
			examples[c.what+fmt.Sprint(len(problems) > 0)] = fmt.Sprintf("%s: the API server says %v, check says %q\n  %.600s", c.what, problems, says, docs[i])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(examples)) {
		t.Error(examples[key])
	}
	t.Logf("%d objects, the API server refuses %d", len(all), refused)
	return known
}

// readDifferences reads the fields about which check and the API server may differ.
func readDifferences(t *testing.T) map[string]bool {
	t.Helper()
	data, err := os.ReadFile("testdata/differences.txt")
	must.Succeed(t, err)
	known := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if what, reason, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && reason != "" {
			known[what] = false
		}
	}
	return known
}
