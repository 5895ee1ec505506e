package plugin

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/testapi"
	"jobpolicy.dev/services/internal/testenv"
)

// dryRunServer answers each creation by the object's name, and notes down what it is asked.
func dryRunServer(t *testing.T, answers map[string]error) (kubeconfig string, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var job batchv1.Job
		if err := json.Unmarshal(body, &job); err != nil {
			t.Errorf("%s %s: body %q: %v", r.Method, r.URL, body, err)
		}
		*asked = append(*asked, fmt.Sprintf("%s %s dryRun=%s %s", r.Method, r.URL.Path, r.URL.Query().Get("dryRun"), job.Name))
		w.Header().Set("Content-Type", "application/json")
		if answer := answers[job.Name]; answer != nil {
			status := answer.(apierrors.APIStatus).Status()
			status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			w.WriteHeader(int(status.Code))
			_ = json.NewEncoder(w).Encode(status)
			return
		}
		w.Header().Set("Warning", `299 - "would violate PodSecurity"`)
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	}))
	t.Cleanup(web.Close)
	return testapi.Kubeconfig(t, web.URL), asked
}

// dryRunJob is a Job without a finding of its own but those of its kind.
const dryRunJob = `apiVersion: batch/v1
kind: Job
metadata:
  name: NAME
spec:
  completions: COMPLETIONS
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox}]
      dnsPolicy: None
`

func TestCheckAsksTheAPIServer(t *testing.T) {
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "x", field.ErrorList{
		field.Invalid(field.NewPath("spec", "completions"), -1, "must be greater than or equal to 0"),
		field.Required(field.NewPath("spec", "template", "spec", "dnsPolicy"), "must have a server"),
		field.Forbidden(field.NewPath("spec", "template", "spec", "dnsPolicy"), "may not be None"),
	})
	forbidden := apierrors.NewForbidden(jobs, "x", fmt.Errorf("exceeded quota"))
	there := apierrors.NewAlreadyExists(jobs, "there")
	busy := apierrors.NewTooManyRequestsError("later")
	kubeconfig, asked := dryRunServer(t, map[string]error{"invalid": invalid, "known": invalid, "forbidden": forbidden, "there": there, "busy": busy})
	cases := map[string]struct {
		completions string
		want        []string
		code        int
	}{
		"taken":     {completions: "1", want: []string{"1: warning: object: would violate PodSecurity [dry-run]"}},
		"there":     {completions: "1"},
		"invalid":   {completions: "1", code: cli.ExitNo, want: []string{"6: error: spec.completions: Invalid value: -1: must be greater than or equal to 0 [dry-run]", "11: error: spec.template.spec.dnsPolicy: Required value: must have a server [dry-run]", "11: error: spec.template.spec.dnsPolicy: Forbidden: may not be None [dry-run]"}},
		"known":     {completions: "-1", code: cli.ExitNo, want: []string{"6: error: spec.completions: must not be negative, is -1 [spec]", "11: error: spec.template.spec.dnsPolicy: Required value: must have a server [dry-run]", "11: error: spec.template.spec.dnsPolicy: Forbidden: may not be None [dry-run]"}},
		"forbidden": {completions: "1", code: cli.ExitNo, want: []string{`1: error: object: jobs.batch "x" is forbidden: exceeded quota [dry-run]`}},
		"busy":      {completions: "1", code: cli.ExitFailed, want: []string{"error: FILE: dry run of Job/busy: Too many requests: later"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			*asked = nil
			file := filepath.Join(t.TempDir(), "job.yaml")
			testenv.WriteFile(t, file, strings.NewReplacer("NAME", name, "COMPLETIONS", tc.completions).Replace(dryRunJob))
			code, out := run(t, "check", "-q", "-f", file, "--dry-run=server", "--kubeconfig", kubeconfig, "-n", "team")
			if want := []string{"POST /apis/batch/v1/namespaces/team/jobs dryRun=All " + name}; !cmp.Equal(want, *asked) {
				t.Errorf("the API server was asked %q, want %q", *asked, want)
			}
			t.Log(out)
			var got []string
			for line := range strings.Lines(strings.ReplaceAll(out, file, "FILE")) {
				line = strings.TrimSpace(strings.TrimPrefix(line, "FILE:"))
				if !strings.HasPrefix(line, "Jobs and CronJobs:") {
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			if code != tc.code {
				t.Errorf("exit code %d, want %d:\n%s", code, tc.code, out)
			}
		})
	}
}
