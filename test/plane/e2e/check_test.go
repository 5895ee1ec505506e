package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/deploy/local/must"
)

// With --dry-run=server check finds what only the API server knows, and nothing is created.
func TestCheckAsksTheAPIServer(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	const good = `apiVersion: batch/v1
kind: Job
metadata:
  name: tried
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox}]
`
	const bad = good + `      volumes: [{name: disk, iscsi: {targetPortal: "192.0.2.1:3260", iqn: wrong, lun: 0}}]
---
apiVersion: batch/v1
kind: CronJob
metadata:
  name: tried
spec:
  schedule: 0 1 * * *
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: busybox}]
          volumes: [{name: disk, iscsi: {targetPortal: "192.0.2.1:3260", iqn: wrong, lun: 0}}]
`
	file := filepath.Join(t.TempDir(), "tried.yaml")
	for name, tc := range map[string]struct {
		manifest string
		args     []string
		code     int
		want     []string
	}{
		"without a dry run": {manifest: bad},
		"taken":             {manifest: good, args: []string{"--dry-run=server"}},
		"refused": {manifest: bad, args: []string{"--dry-run=server"}, code: 1, want: []string{
			":10: error: spec.template.spec.volumes[0].iscsi.iqn: Invalid value", ":24: error: spec.jobTemplate.spec.template.spec.volumes[0].iscsi.iqn: Invalid value",
		}},
		"in a namespace that is not there": {manifest: good, args: []string{"--dry-run=server", "--namespace=nowhere"}, code: 1, want: []string{
			`:1: error: object: namespaces "nowhere" not found [dry-run]`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			must.Succeed(t, os.WriteFile(file, []byte(tc.manifest), 0o600))
			out, err := plugin(t, append([]string{"check", "-f", file, "--kubeconfig", plane.Kubeconfig(), "--namespace", namespace}, tc.args...)...)
			if exitCode(err) != tc.code {
				t.Errorf("%v, want exit code %d:\n%s", err, tc.code, out)
			}
			for _, want := range tc.want {
				if !strings.Contains(out, want) {
					t.Errorf("want %q:\n%s", want, out)
				}
			}
		})
	}
	if _, err := client.BatchV1().Jobs(namespace).Get(t.Context(), "tried", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Job of the dry run: %v, want that there is none", err)
	}
}
