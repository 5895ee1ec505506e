package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"jobpolicy.dev/executor/wire"
)

// policyVersion is that of JobPolicies.
var policyVersion = schema.GroupVersion{Group: "jobpolicy.dev", Version: "v1alpha1"}

// usePolicy gives an object the options of the JobPolicy that it names, or else its namespace: its annotation
// then holds them in place of the name. from says where they are (wire.PolicyOrigin). unread says what could not be read; empty:
// nothing.
func (r *clusterReader) usePolicy(ctx context.Context, object *metav1.ObjectMeta) (from, unread string) {
	from = wire.PolicyOrigin(r.Namespace, object.Annotations, "")
	name, named := wire.PolicyName(object.Annotations)
	if !named && wire.HasPolicy(object.Annotations) {
		return from, ""
	}
	if !named {
		// Without the right to read the namespace, its default is not known. Few namespaces have one, so the
		// answer does not mention this.
		ns := &corev1.Namespace{}
		if err := r.core.Get().Resource("namespaces").Name(r.Namespace).Do(ctx).Into(ns); err != nil {
			return "", ""
		}
		if name = strings.TrimSpace(ns.Annotations[wire.DefaultPolicy]); name == "" {
			return "", ""
		}
		from = wire.PolicyOrigin(r.Namespace, nil, name)
	}
	annotations := maps.Clone(object.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[wire.Policy] = name
	object.Annotations = annotations
	spec, err := r.policySpec(ctx, name)
	if err != nil {
		return from, fmt.Sprintf("read JobPolicy %s in namespace %s: %v", name, r.Namespace, err)
	}
	annotations[wire.Policy] = string(spec)
	return from, ""
}

// usePolicies is usePolicy for many CronJobs. It reads each JobPolicy once.
func (r *clusterReader) usePolicies(ctx context.Context, crons []batchv1.CronJob) (unread []string) {
	type asked struct {
		text string
		is   bool
	}
	read := map[asked]*batchv1.CronJob{} // The first CronJob that asks for it.
	for i := range crons {
		cron := &crons[i]
		text, is := cron.Annotations[wire.Policy]
		first, ok := read[asked{text, is}]
		switch {
		case !ok:
			read[asked{text, is}] = cron
			if _, problem := r.usePolicy(ctx, &cron.ObjectMeta); problem != "" {
				unread = append(unread, problem)
			}
		case first.Annotations[wire.Policy] != text:
			metav1.SetMetaDataAnnotation(&cron.ObjectMeta, wire.Policy, first.Annotations[wire.Policy])
		}
	}
	return unread
}

// policySpec is the spec of a JobPolicy in JSON.
func (r *clusterReader) policySpec(ctx context.Context, name string) (json.RawMessage, error) {
	result := r.policies.Get().Namespace(r.Namespace).Resource("jobpolicies").Name(name).Do(ctx)
	if err := result.Error(); err != nil { // Raw would leave out what the API server says.
		return nil, err
	}
	data, err := result.Raw()
	if err != nil {
		return nil, err
	}
	var policy struct {
		Spec json.RawMessage `json:"spec"`
	}
	return policy.Spec, json.Unmarshal(data, &policy)
}
