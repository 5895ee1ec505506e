package e2e

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"jobpolicy.dev/deploy/local/cluster"
)

// The manifests for a cluster are accepted by the API server, with every field
// known, and give the executor the rights under which all these tests run.
func TestManifestsAreAccepted(t *testing.T) {
	t.Parallel()
	objects := dynamic.NewForConfigOrDie(plane.RESTConfig())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	for _, variant := range []string{"coexist", "replace", "embedded", "embedded-replace", "shadow"} {
		for _, object := range kustomize(t, "../../deploy/kubernetes/"+variant) {
			kind := object.GroupVersionKind()
			if kind.Group == "cert-manager.io" {
				continue // Nobody serves it here.
			}
			mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if err != nil {
				t.Fatalf("%s: %v", variant, err)
			}
			resource := dynamic.ResourceInterface(objects.Resource(mapping.Resource))
			if ns := object.GetNamespace(); ns != "" {
				// A dry run makes no namespace: try the object in one that exists.
				object.SetNamespace("default")
				resource = objects.Resource(mapping.Resource).Namespace("default")
			}
			_, err = resource.Create(t.Context(), object, metav1.CreateOptions{
				DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
			})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				t.Errorf("%s: %s %s: %v", variant, kind.Kind, object.GetName(), err)
			}
		}
	}
}

func TestManifestsGrantWhatTheExecutorNeeds(t *testing.T) {
	t.Parallel()
	var role rbacv1.ClusterRole
	for _, object := range kustomize(t, "../../deploy/kubernetes/coexist") {
		if object.GetKind() == "ClusterRole" {
			data, _ := object.MarshalJSON()
			if err := yaml.UnmarshalStrict(data, &role); err != nil {
				t.Fatal(err)
			}
		}
	}
	local, err := client.RbacV1().ClusterRoles().Get(t.Context(), cluster.ExecutorRole, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// In a cluster the lease is granted by a Role of its namespace, and gangs with
	// their gate.
	want := slices.DeleteFunc(grants(local.Rules), func(g string) bool {
		return strings.Contains(g, "/leases ") || strings.HasPrefix(g, "scheduling.k8s.io/")
	})
	if have := grants(role.Rules); !slices.Equal(have, want) {
		t.Errorf("the manifests grant\n%s\nthe executor of the local control plane has\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}

// grants lists rules as "group/resource verb", sorted.
func grants(rules []rbacv1.PolicyRule) []string {
	var all []string
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, group+"/"+resource+" "+verb)
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

func kustomize(t *testing.T, dir string) []*unstructured.Unstructured {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("kustomize %s: %v", dir, err)
	}
	var objects []*unstructured.Unstructured
	for _, resource := range built.Resources() {
		data, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}
