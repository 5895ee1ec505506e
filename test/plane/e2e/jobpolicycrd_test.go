package e2e

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	explaincmd "k8s.io/kubectl/pkg/cmd/explain"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/yaml"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

var jobPolicies = schema.GroupVersionResource{Group: "jobpolicy.dev", Version: "v1alpha1", Resource: "jobpolicies"}

// policyCRD is the CustomResourceDefinition that the chart installs.
func policyCRD(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile("../../../deploy/chart/jobpolicy/files/jobpolicies.yaml")
	must.Succeed(t, err)
	crd := &unstructured.Unstructured{}
	must.Succeed(t, yaml.Unmarshal(data, crd))
	return crd
}

// servePolicies installs the CustomResourceDefinition on a control plane, unless it is there.
func servePolicies(t *testing.T, plane *cluster.Cluster) {
	t.Helper()
	serveDefinition(t, plane, policyCRD(t))
}

func serveDefinition(t *testing.T, plane *cluster.Cluster, crd *unstructured.Unstructured) {
	t.Helper()
	kinds := dynamic.NewForConfigOrDie(plane.RESTConfig()).Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	if _, err := kinds.Apply(t.Context(), crd.GetName(), crd, metav1.ApplyOptions{FieldManager: "e2e", Force: true}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "JobPolicies are served", func() (bool, string) {
		kind, err := kinds.Get(t.Context(), crd.GetName(), metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, c := range conditionsOf(kind) {
			// Structural schemas have this condition only if something is wrong with them.
			if c["type"] == "NonStructuralSchema" {
				t.Fatalf("the schema is not structural: %v", c)
			}
		}
		return established(kind), "not established"
	})
}

func conditionsOf(object *unstructured.Unstructured) (all []map[string]any) {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range list {
		all = append(all, c.(map[string]any))
	}
	return all
}

// policyOf is a JobPolicy whose spec is YAML.
func policyOf(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	object := map[string]any{}
	must.Succeed(t, yaml.Unmarshal([]byte(spec), &object))
	policy := &unstructured.Unstructured{Object: map[string]any{"spec": object}}
	policy.SetAPIVersion("jobpolicy.dev/v1alpha1")
	policy.SetKind("JobPolicy")
	policy.SetName(name)
	return policy
}

// The API server refuses what the executor could not use, and names the field and what it expects.
func TestAJobPolicyIsValidatedWhenItIsApplied(t *testing.T) {
	t.Parallel()
	servePolicies(t, plane)
	policies := dynamic.NewForConfigOrDie(plane.RESTConfig()).Resource(jobPolicies).Namespace(newNamespace(t))
	cases := map[string]struct {
		spec string
		want []string // empty: it is accepted
	}{
		"nothing":                 {spec: `{}`},
		"all limits":              {spec: `{job: {ttlSecondsAfterFailed: 0, ttlSecondsAfterComplete: 2147483647}, cronJob: {startJitterSeconds: 3600, suspendAfterFailures: 1, skippedHour: RunAfter}}`},
		"below the limit":         {spec: `{job: {ttlSecondsAfterFailed: -1}}`, want: []string{"spec.job.ttlSecondsAfterFailed", "should be greater than or equal to 0"}},
		"beyond 32 bits":          {spec: `{job: {ttlSecondsAfterFailed: 2147483648}}`, want: []string{"spec.job.ttlSecondsAfterFailed", "should be less than or equal to 2147483647"}},
		"above the limit":         {spec: `{cronJob: {startJitterSeconds: 3601}}`, want: []string{"spec.cronJob.startJitterSeconds", "should be less than or equal to 3600"}},
		"too many missed runs":    {spec: `{cronJob: {maxMissedRuns: 101}}`, want: []string{"spec.cronJob.maxMissedRuns", "should be less than or equal to 100"}},
		"a text for a number":     {spec: `{cronJob: {startJitterSeconds: 1h}}`, want: []string{"spec.cronJob.startJitterSeconds", "must be of type integer"}},
		"a fraction":              {spec: `{cronJob: {suspendAfterFailures: 1.5}}`, want: []string{"spec.cronJob.suspendAfterFailures", "must be of type integer"}},
		"a number for an object":  {spec: `{job: 3}`, want: []string{"spec.job", "must be of type object"}},
		"no such value":           {spec: `{cronJob: {skippedHour: Never}}`, want: []string{"spec.cronJob.skippedHour", `supported values: "Skip", "RunAfter"`}},
		"delays":                  {spec: `{job: {retryDelay: {delaysSeconds: [1, 5, 86400], jitterPercent: 100}}}`},
		"delays in two ways":      {spec: `{job: {retryDelay: {delaysSeconds: [1], factor: 1.5}}}`, want: []string{"spec.job.retryDelay.delaysSeconds", "cannot be set together with any of initialSeconds, maxSeconds, factor"}},
		"a limit below the start": {spec: `{job: {retryDelay: {initialSeconds: 9, maxSeconds: 8}}}`, want: []string{"spec.job.retryDelay.maxSeconds", "expected at least initialSeconds"}},
		"an item":                 {spec: `{job: {retryDelay: {delaysSeconds: [1, 0]}}}`, want: []string{"spec.job.retryDelay.delaysSeconds[1]", "should be greater than or equal to 1"}},
		"a delay after quotas":    {spec: `{job: {retryDelay: {delaysSeconds: [1], quotaMaxSeconds: 86400}}}`},
		"no delay after quotas":   {spec: `{job: {retryDelay: {quotaMaxSeconds: 0}}}`, want: []string{"spec.job.retryDelay.quotaMaxSeconds", "should be greater than or equal to 1"}},
		"a factor below 1":        {spec: `{job: {retryDelay: {factor: 0.5}}}`, want: []string{"spec.job.retryDelay.factor", "should be greater than or equal to 1"}},
		"too many names":          {spec: `{job: {failureRuleNames: [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u]}}`, want: []string{"spec.job.failureRuleNames", "must have at most 20 items"}},
		"more memory":             {spec: `{job: {nextTryResources: {container: main, resource: Memory, factor: 1.5, max: 1.5Gi, onExitCodes: [42, 255]}}}`},
		"a factor of 1":           {spec: `{job: {nextTryResources: {resource: Memory, factor: 1, max: 8Gi}}}`, want: []string{"spec.job.nextTryResources.factor", "expected more than 1"}},
		"a factor above 10":       {spec: `{job: {nextTryResources: {resource: Memory, factor: 10.5, max: 8Gi}}}`, want: []string{"spec.job.nextTryResources.factor", "should be less than or equal to 10"}},
		"no quantity":             {spec: `{job: {nextTryResources: {resource: Memory, max: 8GB}}}`, want: []string{"spec.job.nextTryResources.max", "expected a Kubernetes quantity above 0, for example 8Gi"}},
		"a quantity of nothing":   {spec: `{job: {nextTryResources: {resource: Memory, max: "0"}}}`, want: []string{"spec.job.nextTryResources.max", "expected a Kubernetes quantity above 0, for example 8Gi"}},
		"no maximum":              {spec: `{job: {nextTryResources: {resource: Memory}}}`, want: []string{"spec.job.nextTryResources.max", "Required value"}},
		"more of what":            {spec: `{job: {nextTryResources: {max: 8Gi}}}`, want: []string{"spec.job.nextTryResources.resource", "Required value"}},
		"more CPU after nothing":  {spec: `{job: {nextTryResources: {resource: Cpu, max: "2"}}}`, want: []string{"spec.job.nextTryResources.onExitCodes", "expected at least one exit code"}},
		"an exit code of success": {spec: `{job: {nextTryResources: {resource: Cpu, max: "2", onExitCodes: [0]}}}`, want: []string{"spec.job.nextTryResources.onExitCodes[0]", "should be greater than or equal to 1"}},
		"no such field":           {spec: `{job: {ttl: 3}}`, want: []string{`unknown field "spec.job.ttl"`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := policies.Create(t.Context(), policyOf(t, "policy", tc.spec), metav1.CreateOptions{
				DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
			})
			if (err == nil) != (len(tc.want) == 0) {
				t.Errorf("the API server says %v, want %q", err, tc.want)
			}
			for _, want := range tc.want {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("the API server says %v, want %q", err, want)
				}
			}
		})
	}
	// The schema and the executor's own parser refuse the same.
	for name, tc := range cases {
		data, err := yaml.YAMLToJSON([]byte(tc.spec))
		must.Succeed(t, err)
		if _, problems := options.Parse(data); (len(problems) > 0) != (len(tc.want) > 0) {
			t.Errorf("%s: the API server and options.Parse differ: it finds %v", name, problems)
		}
	}
}

// kubectl explain knows each field of the contract.
func TestKubectlExplainsJobPolicies(t *testing.T) {
	t.Parallel()
	servePolicies(t, plane)
	spec := (&jobpolicyv1.PolicySpec{}).ProtoReflect().Descriptor()
	eachField("jobpolicy.spec", spec, func(path string, field protoreflect.FieldDescriptor) {
		out := kubectlExplain(t, path)
		if _, described, _ := strings.Cut(out, "DESCRIPTION:\n"); strings.Contains(described, "<empty>") || strings.TrimSpace(described) == "" {
			t.Errorf("%s is not described:\n%s", path, out)
		}
		if field.Enum() != nil {
			for _, value := range options.EnumNames(field.Enum()) {
				if !strings.Contains(out, value+":") {
					t.Errorf("%s: kubectl does not say what %s means:\n%s", path, value, out)
				}
			}
		}
	})
	if out := kubectlExplain(t, "jobpolicy.spec.cronJob.skippedHour"); !strings.Contains(out, "RunAfter: It starts after the change.") {
		t.Errorf("kubectl explain says\n%s", out)
	}
}

// eachField calls f with each field of a message, at any depth.
func eachField(path string, message protoreflect.MessageDescriptor, f func(path string, field protoreflect.FieldDescriptor)) {
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		at := path + "." + field.JSONName()
		f(at, field)
		if field.Message() != nil {
			eachField(at, field.Message(), f)
		}
	}
}

// kubectlExplain waits until kubectl knows the resource: schemas are published some time after the kind is served.
func kubectlExplain(t *testing.T, path string) (out string) {
	t.Helper()
	eventually(t, "kubectl explain "+path, func() (bool, string) {
		var err error
		out, err = tryExplain(t.TempDir(), path)
		return err == nil, fmt.Sprint(err)
	})
	return out
}

func tryExplain(cacheDir, path string) (string, error) {
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig, flags.CacheDir = new(plane.Kubeconfig()), &cacheDir
	var out bytes.Buffer
	streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out}
	explain, err := explaincmd.NewExplainFlags(streams).ToOptions(cmdutil.NewFactory(flags), "kubectl", []string{path})
	if err != nil {
		return "", err
	}
	err = explain.Run()
	return out.String(), err
}
