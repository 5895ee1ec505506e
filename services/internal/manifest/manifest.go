// Package manifest reads Jobs and CronJobs from YAML or JSON, as strictly as
// kubectl does, and knows on which line each field stands.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
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

// An Object is one document of a file.
type Object struct {
	// File is its name; "-" is standard input.
	File string
	// Job or CronJob is set, or neither: then the document is something else.
	Job     *batchv1.Job
	CronJob *batchv1.CronJob
	Kind    string
	// Problems are fields that are unknown, twice there, or of another type.
	Problems []Problem
	// Incomplete: a field has a value of another type, so nothing is known of the others.
	Incomplete bool
	// JSON is the document as it is written, without defaults.
	JSON  []byte
	lines lines
}

// Line is where a field stands, or the nearest one around it that is there.
func (o *Object) Line(path string) int { return o.lines.of(path) }

// Name is metadata.name.
func (o *Object) Name() string {
	switch {
	case o.Job != nil:
		return o.Job.Name
	case o.CronJob != nil:
		return o.CronJob.Name
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

// Read reads every document. An error means that one cannot be read at all.
func Read(name string, data []byte) ([]*Object, error) {
	var objects []*Object
	for _, doc := range split(data) {
		var root yaml.Node
		err := yaml.Unmarshal(doc.text, &root)
		if err != nil {
			return nil, fmt.Errorf("%s: the document that begins on line %d: %w", name, doc.line, err)
		}
		if len(root.Content) == 0 {
			continue
		}
		o, err := read(doc.text)
		if err != nil {
			return nil, fmt.Errorf("%s: the document that begins on line %d: %w", name, doc.line, err)
		}
		o.File = name
		o.lines = lines{root: root.Content[0], offset: doc.line - 1}
		for i := range o.Problems {
			o.Problems[i].Line = o.Line(o.Problems[i].Path)
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// document is one part of a file, and the line on which it begins.
type document struct {
	text []byte
	line int
}

// split cuts a file at the lines that are a separator.
func split(data []byte) []document {
	var docs []document
	current := document{line: 1}
	for i, line := range bytes.SplitAfter(data, []byte("\n")) {
		if bytes.HasPrefix(line, []byte("---")) && len(bytes.TrimSpace(line[3:])) == 0 {
			docs = append(docs, current)
			current = document{line: i + 2}
			continue
		}
		current.text = append(current.text, line...)
	}
	return append(docs, current)
}

// ErrNoKind is of a document that is no object of the Kubernetes API.
var ErrNoKind = errors.New(`kind: is missing; expected "Job" or "CronJob" of batch/v1`)

func read(text []byte) (*Object, error) {
	data, err := sigsyaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	var meta metav1.TypeMeta
	if err := json.UnmarshalCaseSensitivePreserveInts(data, &meta); err != nil {
		return nil, err
	}
	o := &Object{Kind: meta.Kind, JSON: data}
	switch {
	case meta.Kind == "":
		return nil, ErrNoKind
	case meta.APIVersion == "batch/v1" && meta.Kind == "Job":
		o.Job = &batchv1.Job{}
		o.decode(data, o.Job)
		defaultJobSpec(&o.Job.Spec)
	case meta.APIVersion == "batch/v1" && meta.Kind == "CronJob":
		o.CronJob = &batchv1.CronJob{}
		o.decode(data, o.CronJob)
		defaultJobSpec(&o.CronJob.Spec.JobTemplate.Spec)
	}
	return o, nil
}

// decode fills a Job or CronJob, and lists fields that it does not have, has twice, or that
// have another type.
func (o *Object) decode(data []byte, into any) {
	strict, err := json.UnmarshalStrict(data, into)
	if err != nil {
		o.Incomplete = true
		o.Problems = append(o.Problems, mistyped(data, err))
	}
	for _, e := range strict {
		p := Problem{Text: e.Error()}
		var field json.FieldError
		if errors.As(e, &field) {
			p.Path = field.FieldPath()
		}
		if what, _, ok := strings.Cut(p.Text, " \""); ok {
			p.Text = what // "unknown field", "duplicate field"
		}
		o.Problems = append(o.Problems, p)
	}
}

// defaultJobSpec fills in what the API server would, as far as policy asks.
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
