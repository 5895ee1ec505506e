package manifest

import (
	stdjson "encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/proto/options"
)

const (
	policyGroup   = "jobpolicy.dev"
	policyVersion = policyGroup + "/v1alpha1"
	policyKind    = "JobPolicy"
)

// A JobPolicy is one as it is written.
type JobPolicy struct {
	metav1.TypeMeta
	Metadata metav1.ObjectMeta `json:"metadata"`
	// Spec is the message PolicySpec in JSON.
	Spec   stdjson.RawMessage `json:"spec"`
	Status map[string]any     `json:"status,omitempty"`
}

func (o *Object) decodePolicy(data []byte) {
	o.JobPolicy = &JobPolicy{}
	o.decode(data, o.JobPolicy)
	if len(o.JobPolicy.Spec) == 0 {
		o.Problems = append(o.Problems, Problem{Path: "spec", Text: "is required"})
		return
	}
	_, problems := options.Parse(o.JobPolicy.Spec)
	for _, p := range problems {
		path := "spec"
		if p.Field != "" {
			path += "." + p.Field
		}
		o.Problems = append(o.Problems, Problem{Path: path, Text: p.Description})
	}
}

// UsePolicies gives Jobs and CronJobs the options of valid JobPolicies among the objects: their annotation
// then holds the spec in place of the name. Other names stay. An object that names no namespace may be in any.
func UsePolicies(objects []*Object) {
	for _, o := range objects {
		switch {
		case o.Job != nil:
			usePolicy(objects, o.Job.Namespace, &o.Job.ObjectMeta)
		case o.CronJob != nil:
			usePolicy(objects, o.CronJob.Namespace, &o.CronJob.ObjectMeta)
			usePolicy(objects, o.CronJob.Namespace, &o.CronJob.Spec.JobTemplate.ObjectMeta)
		}
	}
}

func usePolicy(objects []*Object, namespace string, user *metav1.ObjectMeta) {
	name, ok := user.Annotations[wire.Policy]
	if !ok {
		return
	}
	for _, o := range objects {
		if o.JobPolicy == nil || len(o.Problems) > 0 || o.JobPolicy.Metadata.Name != name {
			continue
		}
		if of := o.JobPolicy.Metadata.Namespace; of == "" || namespace == "" || of == namespace {
			user.Annotations[wire.Policy] = string(o.JobPolicy.Spec)
			return
		}
	}
}
