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
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"jobpolicy.dev/services/internal/cli"
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
	return testenv.Kubeconfig(t, web.URL), asked
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
      dnsConfig: {nameservers: [10.0.0.1]}
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

// dryRunCronJob has a field that is not in batch/v1, which is sent on.
const dryRunCronJob = `apiVersion: batch/v1
kind: CronJob
metadata:
  name: NAME
spec:
  schedule: 5 * * * *
  jobTemplate:
    metadata:
      labels: {app: x}
    spec:
      activeDeadlineSeconds: 60
      unknown: 1
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: busybox}]
`

// The API server takes CronJobs whose Jobs it refuses, so check also asks for the next run.
func TestCheckAsksForTheRunsOfACronJob(t *testing.T) {
	setNow(t, time.Unix(60*29_454_000, 0))
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	kind := schema.GroupKind{Group: "batch", Kind: "Job"}
	kubeconfig, asked := dryRunServer(t, map[string]error{
		"refused": apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "CronJob"}, "refused", field.ErrorList{field.Required(field.NewPath("spec", "schedule"), "")}),
		"run-29454000": apierrors.NewInvalid(kind, "x", field.ErrorList{
			field.Invalid(field.NewPath("spec", "template", "spec", "restartPolicy"), "Never", "no"),
			field.Invalid(field.NewPath("metadata", "name"), "x", "too long"),
		}),
		"quota-29454000":  apierrors.NewForbidden(jobs, "quota-29454000", fmt.Errorf("exceeded quota")),
		"rights-29454000": apierrors.NewForbidden(jobs, "", fmt.Errorf(`User "u" cannot create resource "jobs" in API group "batch"`)),
		"there-29454000":  apierrors.NewAlreadyExists(jobs, "there-29454000"),
	})
	unknown := "error: spec.jobTemplate.spec.unknown: unknown field [fields]"
	warning := "warning: object: would violate PodSecurity [dry-run]"
	cases := map[string]struct {
		want []string
		once bool
	}{
		"taken":   {want: []string{warning, unknown}},
		"there":   {want: []string{warning, unknown}},
		"refused": {want: []string{"error: spec.schedule: Required value [dry-run]", unknown}, once: true},
		"run":     {want: []string{warning, "error: metadata.name: every run is refused: Invalid value: \"x\": too long [dry-run]", unknown, "error: spec.jobTemplate.spec.template.spec.restartPolicy: every run is refused: Invalid value: \"Never\": no [dry-run]"}},
		"quota":   {want: []string{warning, `error: object: every run is refused: jobs.batch "quota-29454000" is forbidden: exceeded quota [dry-run]`, unknown}},
		"rights":  {want: []string{warning, `warning: object: the Job of a run could not be tried: jobs.batch is forbidden: User "u" cannot create resource "jobs" in API group "batch" [dry-run]`, unknown}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			*asked = nil
			file := filepath.Join(t.TempDir(), "cronjob.yaml")
			testenv.WriteFile(t, file, strings.ReplaceAll(dryRunCronJob, "NAME", name))
			_, out := run(t, "check", "-q", "-f", file, "--dry-run=server", "--kubeconfig", kubeconfig, "-n", "team")
			want := []string{"POST /apis/batch/v1/namespaces/team/cronjobs dryRun=All " + name}
			if !tc.once {
				want = append(want, "POST /apis/batch/v1/namespaces/team/jobs dryRun=All "+name+"-29454000")
			}
			if diff := cmp.Diff(want, *asked); diff != "" {
				t.Errorf("the API server was asked (-want +got):\n%s", diff)
			}
			var got []string
			for line := range strings.Lines(out) {
				if _, text, ok := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, file+":")), ": "); ok && strings.HasPrefix(line, file) && !strings.Contains(line, "[pile-up]") {
					got = append(got, text)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}
