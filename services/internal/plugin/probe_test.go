package plugin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/services/internal/testenv"
)

// probedServer is an API server whose Jobs have a status of these field managers at once.
func probedServer(t *testing.T, writers []string) (kubeconfig string) {
	t.Helper()
	job := &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: "team"}}
	for _, writer := range writers {
		job.ManagedFields = append(job.ManagedFields, metav1.ManagedFieldsEntry{Manager: writer, Subresource: "status"})
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(job)
	}))
	t.Cleanup(web.Close)
	return testenv.Kubeconfig(t, web.URL)
}

// A controller that comes second has nothing to write, so a probe knows only the first.
func TestAProbeSaysWhoWasFirst(t *testing.T) {
	const builtIn, ours = "kube-controller-manager", "jobpolicy-executor"
	for name, tc := range map[string]struct {
		writers []string
		want    string
	}{
		"the built-in controller": {writers: []string{builtIn}, want: "The built-in controller: kube-controller-manager wrote the status of a suspended Job first. "},
		"jobpolicy":               {writers: []string{ours}, want: "jobpolicy: jobpolicy-executor wrote the status of a suspended Job first. The built-in controller may be on, too"},
		"both at once":            {writers: []string{builtIn, ours}, want: "Two controllers: kube-controller-manager and jobpolicy-executor wrote"},
		"another":                 {writers: []string{"kueue"}, want: "Another controller: kueue wrote the status of a suspended Job that names no manager."},
		"nobody":                  {want: "Nobody: no controller wrote the status of a suspended Job within 1s."},
	} {
		t.Run(name, func(t *testing.T) {
			_, out := run(t, "preflight", "--probe", "--timeout=1s", "--kubeconfig", probedServer(t, tc.writers), "-n", "team")
			if !strings.HasPrefix(out, tc.want) {
				t.Errorf("output %q, want it to begin with %q", out, tc.want)
			}
		})
	}
}
