package clients

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/freeport"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/certificates"
	"jobpolicy.dev/test/kit/controlplane"
)

// A webhookServer is where a client serves its webhooks: on this machine, outside the cluster.
type webhookServer struct {
	port string
	// certDir has tls.crt, tls.key and ca.crt.
	certDir string
	ca      string // base64
}

func newWebhookServer(t *testing.T) webhookServer {
	t.Helper()
	dir := certificates.Folder(t)
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	must.Succeed(t, err)
	return webhookServer{freeport.PortFor(t), dir, base64.StdEncoding.EncodeToString(ca)}
}

// client is the clientConfig of a webhook.
func (s webhookServer) client(path string) map[string]any {
	return map[string]any{"url": fmt.Sprintf("https://localhost:%s%s", s.port, path), "caBundle": s.ca}
}

// redirect changes a webhook configuration that calls a service into one that calls this server. It keeps the webhooks
// that keep names.
func (s webhookServer) redirect(t *testing.T, configuration *unstructured.Unstructured, keep func(name string) bool) {
	t.Helper()
	webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	must.Succeed(t, err)
	var kept []any
	for _, webhook := range webhooks {
		fields, _ := webhook.(map[string]any)
		path, _, err := unstructured.NestedString(fields, "clientConfig", "service", "path")
		must.Succeed(t, err)
		fields["clientConfig"] = s.client(path)
		if name, _ := fields["name"].(string); keep(name) {
			kept = append(kept, fields)
		}
	}
	configuration.Object["webhooks"] = kept
}

// convert lets this server convert the versions of a kind.
func (s webhookServer) convert(definition *unstructured.Unstructured) {
	spec, _, _ := unstructured.NestedMap(definition.Object, "spec")
	spec["conversion"] = map[string]any{
		"strategy": "Webhook",
		"webhook":  map[string]any{"conversionReviewVersions": []any{"v1"}, "clientConfig": s.client("/convert")},
	}
	definition.Object["spec"] = spec
}

// readManifests reads the objects in files, which a pattern matches.
func readManifests(t *testing.T, pattern string) []*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no file, %v", pattern, err)
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		data, err := os.ReadFile(file)
		must.Succeed(t, err)
		objects = append(objects, parseManifests(t, data)...)
	}
	return objects
}

func parseManifests(t *testing.T, data []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		must.Succeed(t, err)
		if o.Object != nil {
			objects = append(objects, o)
		}
	}
}

// Resources of what is installed for a client.
var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	validating  = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
	mutating    = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}
)

// apply creates objects.
func apply(t *testing.T, plane *cluster.Cluster, resource schema.GroupVersionResource, objects ...*unstructured.Unstructured) {
	t.Helper()
	client := dynamic.NewForConfigOrDie(plane.RESTConfig()).Resource(resource)
	for _, o := range objects {
		if _, err := client.Namespace(o.GetNamespace()).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatalf("create %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// define creates the definitions of kinds, and waits until the API server serves them.
func define(t *testing.T, plane *cluster.Cluster, objects ...*unstructured.Unstructured) {
	t.Helper()
	apply(t, plane, definitions, objects...)
	client := dynamic.NewForConfigOrDie(plane.RESTConfig()).Resource(definitions)
	for _, o := range objects {
		controlplane.Eventually(t, o.GetName()+" is served", func() (bool, string) {
			now, err := client.Get(t.Context(), o.GetName(), metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			conditions, _, _ := unstructured.NestedSlice(now.Object, "status", "conditions")
			for _, c := range conditions {
				if fields, _ := c.(map[string]any); fields["type"] == "Established" && fields["status"] == "True" {
					return true, ""
				}
			}
			return false, fmt.Sprint(conditions)
		})
	}
}

func every(string) bool { return true }

// installWebhooks creates the webhook configurations of a manifest, so that they call a server.
func installWebhooks(t *testing.T, plane *cluster.Cluster, server webhookServer, prefix, file string, keep func(name string) bool) {
	t.Helper()
	for _, o := range readManifests(t, file) {
		server.redirect(t, o, keep)
		o.SetName(prefix + "-" + o.GetName())
		resource := validating
		if o.GetKind() == "MutatingWebhookConfiguration" {
			resource = mutating
		}
		apply(t, plane, resource, o)
	}
}
