package policy

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

// Resource is the custom resource.
var Resource = schema.GroupVersionResource{Group: "jobpolicy.dev", Version: "v1alpha1", Resource: "jobpolicies"}

// object is what is kept of a JobPolicy.
type object struct {
	metav1.ObjectMeta
	spec *jobpolicyv1.PolicySpec
	// problems say why spec is not to be used; none: it may be.
	problems []string
	status   status
}

// decode is the transform of the informers.
func (p *Policies) decode(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil // It is decoded, or says that the object is gone.
	}
	o := &object{ObjectMeta: metav1.ObjectMeta{
		Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(), Generation: u.GetGeneration(),
	}}
	o.readSpec(u.Object["spec"], &p.cfg)
	if written, ok := u.Object["status"].(map[string]any); ok {
		// A status that cannot be read counts as none, and is written anew.
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(written, &o.status)
	}
	return o, nil
}

func (o *object) readSpec(spec any, cfg *Config) {
	text, err := json.Marshal(spec)
	if err != nil {
		o.problems = []string{fmt.Sprintf("spec: %v", err)}
		return
	}
	parsed, problems := options.Parse(text)
	problems = append(problems, cfg.Bounds.Check(parsed)...)
	if len(problems) == 0 {
		cfg.ClusterGroups.Apply(parsed)
		o.spec = parsed
	}
	for _, p := range problems {
		p.Field = "spec." + p.Field
		o.problems = append(o.problems, p.String())
	}
}

// same reports whether two versions of a policy have the same options.
func (o *object) same(other *object) bool {
	return o.UID == other.UID && o.Generation == other.Generation && len(o.problems) == len(other.problems) && proto.Equal(o.spec, other.spec)
}
