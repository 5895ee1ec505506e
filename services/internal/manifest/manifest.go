// Package manifest reads Jobs, CronJobs and JobPolicies from YAML or JSON, as strictly as
// kubectl does, and knows on which line each field stands.
//
// Weighed against kyaml, which knows lines and no types, and strict decoding by
// sigs.k8s.io/yaml, which knows types and not the line of an unknown field.
package manifest

import (
	"bytes"
	"cmp"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"
)

// A Problem is something wrong at a field.
type Problem struct {
	// Path is the field as people write it: spec.template.spec.restartPolicy.
	Path string
	Line int
	Text string
}

// An Object is one document of a file, or one item of a list.
type Object struct {
	// File is its name; "-" is standard input.
	File string
	// One of Job, CronJob and JobPolicy is set, or none: then the document is something else.
	Job       *batchv1.Job
	CronJob   *batchv1.CronJob
	JobPolicy *JobPolicy
	Kind      string
	// Problems are fields that are unknown, duplicate, or of another type.
	Problems []Problem
	// Incomplete: a field has a value of another type, or the API server does not know the
	// version or kind. So nothing is known of the other fields.
	Incomplete bool
	// JSON is the object as it is written, without defaults.
	JSON  []byte
	lines lines
}

// Known reports whether the object is of one of the kinds that this package reads.
func (o *Object) Known() bool { return o.Job != nil || o.CronJob != nil || o.JobPolicy != nil }

// Line is the line of a field, or of the nearest field around it that exists.
func (o *Object) Line(path string) int { return o.lines.of(path) }

// Name is metadata.name.
func (o *Object) Name() string {
	switch {
	case o.Job != nil:
		return o.Job.Name
	case o.CronJob != nil:
		return o.CronJob.Name
	case o.JobPolicy != nil:
		return o.JobPolicy.Metadata.Name
	}
	return ""
}

// ReadFile reads every document of a file; "-" is stdin.
func ReadFile(name string, stdin io.Reader) ([]*Object, error) {
	var data []byte
	var err error
	if name == "-" {
		data, err = io.ReadAll(stdin)
	} else {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, err
	}
	return Read(name, data)
}

// ReadFiles reads every document of some files, and gives Jobs and CronJobs the options of the JobPolicies among
// these (UsePolicies).
func ReadFiles(names []string, stdin io.Reader) ([]*Object, error) {
	var all []*Object
	for _, name := range names {
		objects, err := ReadFile(name, stdin)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	UsePolicies(all)
	return all, nil
}

// Read reads every document, and every item of a list. An error means that one cannot be
// read at all. If it is ErrNoKind, the objects are those of all other documents.
func Read(name string, data []byte) ([]*Object, error) {
	var objects []*Object
	var noKind error
	for _, doc := range split(data) {
		found, err := doc.read()
		if err != nil {
			err = fmt.Errorf("%s: the document that begins on line %d: %w", name, doc.line, err)
			if !errors.Is(err, ErrNoKind) {
				return nil, err
			}
			noKind = cmp.Or(noKind, err)
		}
		for _, o := range found {
			o.File = name
			if o.Known() {
				o.Problems = append(o.Problems, o.lines.repeated("", o.lines.root)...)
			}
			for i := range o.Problems {
				o.Problems[i].Line = o.Line(o.Problems[i].Path)
			}
		}
		objects = append(objects, found...)
	}
	return objects, noKind
}

// document is one part of a file, and the line on which it begins.
type document struct {
	text []byte
	line int
}

// split splits a file at the separator lines, which may end with a comment.
func split(data []byte) []document {
	var docs []document
	current := document{line: 1}
	for i, line := range bytes.SplitAfter(data, []byte("\n")) {
		if separates(line) {
			docs = append(docs, current)
			current = document{line: i + 2}
			continue
		}
		current.text = append(current.text, line...)
	}
	return append(docs, current)
}

func separates(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	text := bytes.TrimSpace(rest)
	return ok && (len(text) == 0 || text[0] == '#' && rest[0] != '#')
}

// read reads the objects of a document; none if it is empty.
func (d document) read() ([]*Object, error) {
	var root, further yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(d.text))
	if err := decoder.Decode(&root); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, cmp.Or(d.unreadable(), err)
	}
	// The functions that read objects ignore all but the first document.
	if err := decoder.Decode(&further); err == nil {
		return nil, fmt.Errorf("a further document begins on line %d: expected a line with only --- before it", d.line-1+further.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	data, err := sigsyaml.YAMLToJSON(d.text)
	if err != nil {
		return nil, err
	}
	if len(root.Content) == 0 {
		return nil, nil
	}
	return read(data, metav1.TypeMeta{}, lines{root: root.Content[0], offset: d.line - 1})
}

// unreadable is the error of the document with the line of the file.
func (d document) unreadable() error {
	before := bytes.Repeat([]byte("\n"), d.line-1)
	return yaml.NewDecoder(io.MultiReader(bytes.NewReader(before), bytes.NewReader(d.text))).Decode(new(yaml.Node))
}

// ErrNoKind says that a document is no object of the Kubernetes API.
var ErrNoKind = errors.New(`kind: is missing; expected "Job" or "CronJob" of batch/v1`)

// read reads an object, or the objects of a list. If data names no apiVersion or no kind, read
// takes that of otherwise.
func read(data []byte, otherwise metav1.TypeMeta, at lines) ([]*Object, error) {
	meta := otherwise
	if err := json.UnmarshalCaseSensitivePreserveInts(data, &meta); err != nil {
		return nil, noObject(data, reflect.TypeOf(meta), err)
	}
	o := &Object{Kind: meta.Kind, JSON: data, lines: at}
	switch meta {
	case metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}:
		o.Job = &batchv1.Job{}
		o.decode(data, o.Job)
		defaultJobSpec(&o.Job.Spec)
	case metav1.TypeMeta{APIVersion: "batch/v1", Kind: "CronJob"}:
		o.CronJob = &batchv1.CronJob{}
		o.decode(data, o.CronJob)
		defaultJobSpec(&o.CronJob.Spec.JobTemplate.Spec)
	case metav1.TypeMeta{APIVersion: policyVersion, Kind: policyKind}:
		o.decodePolicy(data)
	case metav1.TypeMeta{APIVersion: "v1", Kind: "List"}:
		return readItems(data, metav1.TypeMeta{}, at)
	case metav1.TypeMeta{APIVersion: "batch/v1", Kind: "JobList"}, metav1.TypeMeta{APIVersion: "batch/v1", Kind: "CronJobList"}:
		// The API server leaves the kind of the items out.
		return readItems(data, metav1.TypeMeta{APIVersion: "batch/v1", Kind: strings.TrimSuffix(meta.Kind, "List")}, at)
	}
	if meta.Kind == "" {
		return nil, ErrNoKind
	}
	o.refuse(meta)
	return []*Object{o}, nil
}

// noObject says why a document, or an item of a list, is no object.
func noObject(data []byte, t reflect.Type, err error) error {
	p := mistyped(data, t, err)[0]
	if p.Path == "" {
		return ErrNoKind
	}
	return errors.New(p.Path + ": " + p.Text)
}

// refuse reports a Job or CronJob that the API server does not know, because its version, or
// its kind in this spelling, does not exist. Other groups may have kinds of the same names.
func (o *Object) refuse(meta metav1.TypeMeta) {
	group, _, _ := strings.Cut(meta.APIVersion, "/")
	if meta.Kind == policyKind && meta.APIVersion != policyVersion && (group == policyGroup || group == "") {
		o.Incomplete, o.Problems = true, []Problem{{Path: "apiVersion", Text: fmt.Sprintf("%q: expected %s", meta.APIVersion, policyVersion)}}
	}
	for _, kind := range []string{"Job", "CronJob", "JobList", "CronJobList"} {
		switch {
		case !strings.EqualFold(meta.Kind, kind):
		case meta.APIVersion == "":
			o.Incomplete, o.Problems = true, []Problem{{Path: "apiVersion", Text: "is missing; expected batch/v1"}}
		case meta.APIVersion == "batch/v1" && meta.Kind != kind:
			o.Incomplete, o.Problems = true, []Problem{{Path: "kind", Text: fmt.Sprintf("%q: expected %s", meta.Kind, kind)}}
		case meta.APIVersion != "batch/v1" && (group == "batch" || group == "v1"):
			o.Incomplete, o.Problems = true, []Problem{{Path: "apiVersion", Text: fmt.Sprintf("%q: expected batch/v1", meta.APIVersion)}}
		}
	}
}

func readItems(data []byte, otherwise metav1.TypeMeta, at lines) ([]*Object, error) {
	var list struct {
		Items []stdjson.RawMessage `json:"items"`
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(data, &list); err != nil {
		return nil, noObject(data, reflect.TypeOf(list), err)
	}
	var objects []*Object
	for i, item := range list.Items {
		found, err := read(item, otherwise, at.in(fmt.Sprintf("items[%d]", i)))
		if err != nil {
			// Not wrapped: the document has a kind, only the item has none.
			return nil, fmt.Errorf("items[%d]: %s", i, err.Error())
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// decode fills a Job or CronJob, and lists fields that it does not have, or that have another
// type. Fields that are repeated are no longer in data.
func (o *Object) decode(data []byte, into any) {
	strict, err := json.UnmarshalStrict(data, into)
	if err != nil {
		o.Incomplete = true
		o.Problems = append(o.Problems, mistyped(data, reflect.TypeOf(into), err)...)
	}
	for _, e := range strict {
		p := Problem{Text: e.Error()}
		var field json.FieldError
		if errors.As(e, &field) {
			p.Path = field.FieldPath()
		}
		if what, _, ok := strings.Cut(p.Text, " \""); ok {
			p.Text = what // "unknown field"
			if paths := expectedAt(p.Path, into); len(paths) > 0 {
				p.Text += "; expected at " + strings.Join(paths, ", or at ")
			}
		}
		o.Problems = append(o.Problems, p)
	}
}

// defaultJobSpec sets the API server's defaults that the policy needs.
func defaultJobSpec(spec *batchv1.JobSpec) {
	one := int32(1)
	if spec.Completions == nil && spec.Parallelism == nil {
		spec.Completions = &one
	}
	if spec.Parallelism == nil {
		spec.Parallelism = &one
	}
	if spec.BackoffLimit == nil && spec.BackoffLimitPerIndex != nil {
		unlimited := int32(1<<31 - 1)
		spec.BackoffLimit = &unlimited
	}
	if spec.PodFailurePolicy == nil {
		return
	}
	for _, rule := range spec.PodFailurePolicy.Rules {
		for i := range rule.OnPodConditions {
			if c := &rule.OnPodConditions[i]; c.Status == "" {
				c.Status = corev1.ConditionTrue
			}
		}
	}
}
