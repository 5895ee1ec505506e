package clients

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/freeport"
)

// kuberay starts a Ray cluster for a RayJob, submits to it with a Job, and ends with either.
var kuberay = client{
	name:  "kuberay",
	needs: []string{"kubectl", "kuberay"},
	objects: []schema.GroupVersionResource{
		resource("ray.io", "v1", "rayjobs"),
		resource("ray.io", "v1", "rayclusters"),
	},
	here:    true,
	install: installKubeRay,
}

// installKubeRay starts KubeRay's operator. The pods of its clusters do not run Ray. So it asks a dashboard of ours how a Ray job is: as
// its HTTP proxy, this one gets all requests that are meant for the dashboards of clusters. Scenarios find the folder of Ray jobs in RAY_JOBS.
func installKubeRay(t *testing.T, plane *cluster.Cluster) func(*testing.T, side) {
	t.Helper()
	folder := t.TempDir()
	t.Setenv("RAY_JOBS", folder)
	server := httptest.NewServer(dashboard(folder))
	t.Cleanup(server.Close)
	module := moduleDir(t, "kuberay", "github.com/ray-project/kuberay/ray-operator")
	define(t, plane, readManifests(t, filepath.Join(module, "config", "crd", "bases", "*.yaml"))...)
	health := freeport.AddressFor(t)
	operator := manager{"kuberay", []string{
		"HTTP_PROXY=" + server.URL, "ENABLE_PROBES_INJECTION=false", "kuberay",
		"--health-probe-bind-address=" + health, "--metrics-addr=0", "--enable-leader-election=false", "--qps=300", "--burst=500",
		"--feature-gates=RayJobDeletionPolicy=true",
	}, "http://" + health + "/readyz"}
	operator.start(t, plane)
	return nil
}

// dashboard says of a Ray job what is in the file of its name in a folder, a word such as RUNNING. A Ray job that has no file is not known.
func dashboard(folder string) http.HandlerFunc {
	return func(response http.ResponseWriter, request *http.Request) {
		name, ok := strings.CutPrefix(request.URL.Path, "/api/jobs/")
		if !ok {
			http.Error(response, "no such page", http.StatusNotFound)
			return
		}
		answer := map[string]any{"stopped": true}
		if request.Method == http.MethodGet {
			file := filepath.Join(folder, path.Base(name))
			word, err := os.ReadFile(file)
			if err != nil {
				http.Error(response, err.Error(), http.StatusNotFound)
				return
			}
			answer = rayJob(path.Base(name), strings.TrimSpace(string(word)))
		}
		_ = json.NewEncoder(response).Encode(answer) // KubeRay asks again
	}
}

func rayJob(name, status string) map[string]any {
	job := map[string]any{"submission_id": name, "status": status, "message": "Ray says " + status}
	if status != "RUNNING" {
		job["end_time"] = time.Now().UnixMilli()
	}
	return job
}
