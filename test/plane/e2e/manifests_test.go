package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/objects"
)

// The manifests for a cluster are accepted by the API server, with every field known:
// each folder by itself, and with all components, which need kinds of cert-manager and
// of the Prometheus operator.
func TestManifestsAreAccepted(t *testing.T) {
	t.Parallel()
	objects := dynamic.NewForConfigOrDie(plane.RESTConfig())
	serveOptionalKinds(t, objects)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	tried := map[string]bool{}
	for name, dir := range manifestFolders(t) {
		for _, object := range kustomize(t, dir) {
			if err := tryOut(t.Context(), objects, mapper, object); err != nil {
				t.Errorf("%s: %s %s: %v", name, object.GetKind(), object.GetName(), err)
			}
			tried[object.GetKind()] = true
		}
	}
	for _, kind := range []string{"Certificate", "Issuer", "PodMonitor", "PrometheusRule", "NetworkPolicy", "Deployment", "ClusterRole"} {
		if !tried[kind] {
			t.Errorf("no folder has a %s", kind)
		}
	}
}

// tryOut creates an object and keeps nothing of it.
func tryOut(ctx context.Context, objects dynamic.Interface, mapper meta.RESTMapper, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	resource := dynamic.ResourceInterface(objects.Resource(mapping.Resource))
	if ns := object.GetNamespace(); ns != "" {
		// A dry run makes no namespace: try the object in one that exists.
		object.SetNamespace("default")
		resource = objects.Resource(mapping.Resource).Namespace("default")
	}
	_, err = resource.Create(ctx, object, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// manifestFolders returns every folder of manifests by its name. A folder that does not
// stand alone is joined to one that does.
func manifestFolders(t *testing.T) map[string]string {
	t.Helper()
	const top = "../../../deploy/kubernetes"
	files, err := filepath.Glob(top + "/*/jobpolicy.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("folders of manifests: %q, %v", files, err)
	}
	folders := map[string]string{}
	for _, file := range files {
		dir := filepath.Dir(file)
		folders[filepath.Base(dir)] = dir
	}
	components, err := filepath.Glob(top + "/components/*")
	if err != nil || len(components) == 0 {
		t.Fatalf("components: %q, %v", components, err)
	}
	joined := t.TempDir()
	below := func(dir string) string {
		absolute, err := filepath.Abs(dir)
		must.Succeed(t, err)
		relative, err := filepath.Rel(joined, absolute)
		must.Succeed(t, err)
		return relative
	}
	kustomization := "resources: [" + below(top+"/coexist-cert-manager") + "]\ncomponents:\n"
	for _, dir := range components {
		kustomization += "- " + below(dir) + "\n"
	}
	must.Succeed(t, os.WriteFile(filepath.Join(joined, "kustomization.yaml"), []byte(kustomization), 0o600))
	folders["with all components"] = joined
	return folders
}

func TestManifestsGrantWhatTheExecutorNeeds(t *testing.T) {
	t.Parallel()
	role := clusterRole(t, "../../../deploy/kubernetes/coexist")
	local := objects.Get(t, client.RbacV1().ClusterRoles(), cluster.ExecutorRole)
	// In a cluster the lease is granted by a Role of its namespace, gangs with their gate, and nodes with
	// executor.readNodes.
	want := slices.DeleteFunc(grants(local.Rules), func(g string) bool {
		return strings.Contains(g, "/leases ") || strings.HasPrefix(g, "scheduling.k8s.io/") || strings.HasPrefix(g, "/nodes ")
	})
	if have := grants(role.Rules); !slices.Equal(have, want) {
		t.Errorf("the manifests grant\n%s\nthe executor of the local control plane has\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}

// clusterRole is the ClusterRole of a folder of manifests.
func clusterRole(t *testing.T, dir string) (role rbacv1.ClusterRole) {
	t.Helper()
	for _, object := range kustomize(t, dir) {
		if object.GetKind() == "ClusterRole" {
			data, _ := object.MarshalJSON()
			must.Succeed(t, yaml.UnmarshalStrict(data, &role))
		}
	}
	return role
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
		must.Succeed(t, err)
		object := &unstructured.Unstructured{}
		must.Succeed(t, yaml.Unmarshal(data, object))
		objects = append(objects, object)
	}
	return objects
}
