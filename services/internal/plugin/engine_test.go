package plugin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/testengine"
	"jobpolicy.dev/services/internal/testenv"
	"jobpolicy.dev/services/internal/tlsfiles"
)

// serveObjects answers as an API server does that has a CronJob and a Job.
func serveObjects(t *testing.T) (address string) {
	t.Helper()
	cron := newScene().CronJob
	cron.TypeMeta = metav1.TypeMeta{APIVersion: "batch/v1", Kind: "CronJob"}
	job := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "once", UID: testUID(9)},
		Spec: batchv1.JobSpec{
			Parallelism: new(int32(1)), Completions: new(int32(1)), BackoffLimit: new(int32(6)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}},
		},
	}
	objects := map[string]any{
		"/apis/batch/v1/namespaces/ns/cronjobs/backup": cron,
		"/apis/batch/v1/namespaces/ns/jobs/once":       job,
		"/apis/batch/v1/namespaces/ns/jobs":            &batchv1.JobList{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "JobList"}},
		"/api/v1/namespaces/ns/pods":                   &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}},
		"/api/v1/namespaces/ns/events":                 &corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		object, ok := objects[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(object)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// Explain asks the engine that --engine names, with the certificate of the flags, and
// says what that engine answers.
func TestExplainAsksAnotherEngine(t *testing.T) {
	setNow(t, cronNow) // in the first seconds of an hour, the run is not late yet
	ca := testenv.NewAuthority(t, "authority")
	server, client := ca.Issue(t, "engine"), ca.Issue(t, "reader")
	creds, err := (&tlsfiles.Server{CertFile: server.CertFile, KeyFile: server.KeyFile, ClientCAFile: ca.File}).Credentials(new(testenv.Log).Logger())
	if err != nil {
		t.Fatal(err)
	}
	remote := testengine.Start(t, testengine.Config{
		Credentials: creds,
		Decide: func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
			resp, err := engine.DecideJob(req)
			for _, rule := range resp.GetExplanation().GetRules() {
				rule.Detail = "the other engine was asked"
			}
			return resp, err
		},
	})
	api := serveObjects(t)
	tls := []string{"--engine-ca-file", ca.File, "--engine-cert-file", client.CertFile, "--engine-key-file", client.KeyFile}
	away := []string{"--engine", "127.0.0.1:1", "--engine-insecure", "--engine-timeout", "300ms"}
	cases := map[string]struct {
		object string
		flags  []string
		code   int
		want   string
	}{
		"a Job": {
			object: "job/once", flags: append([]string{"--engine", remote.Address}, tls...), code: cli.ExitOK,
			want: "the other engine was asked",
		},
		"a CronJob": {
			object: "cronjob/backup", flags: append([]string{"--engine", remote.Address}, tls...), code: cli.ExitOK,
			want: "CronJob ns/backup  Late",
		},
		"the engine built in": {object: "cj/backup", code: cli.ExitOK, want: "CronJob ns/backup  Late"},
		"no certificate": {
			object: "job/once",
			flags:  []string{"--engine", remote.Address, "--engine-ca-file", ca.File, "--engine-timeout", "1s"},
			code:   cli.ExitFailed,
			want:   "error: engine " + remote.Address + ": ",
		},
		"an engine that is off": {object: "cronjob/backup", flags: away, code: cli.ExitFailed, want: "engine 127.0.0.1:1: Unavailable"},
		"no address":            {object: "job/once", flags: tls, code: cli.ExitUsage, want: "--engine is required with --engine-ca-file"},
		"no key": {
			object: "job/once", flags: []string{"--engine", "x:1", "--engine-cert-file", client.CertFile},
			code: cli.ExitUsage,
			want: "--engine-cert-file needs --engine-key-file",
		},
		"no such file": {
			object: "job/once", flags: []string{"--engine", "x:1", "--engine-ca-file", filepath.Join(t.TempDir(), "ca")},
			code: cli.ExitFailed,
			want: "--engine-ca-file",
		},
		"no time": {
			object: "job/once", flags: []string{"--engine", "x:1", "--engine-timeout", "0s"}, code: cli.ExitUsage,
			want: "--engine-timeout must be above 0s, is 0s",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"explain", tc.object, "--server", api, "-n", "ns", "-o", "wide"}, tc.flags...)
			code, out := run(t, args...)
			if code != tc.code || !strings.Contains(out, tc.want) {
				t.Errorf("%s: exit code %d, want %d with %q:\n%s", fmt.Sprint(args), code, tc.code, tc.want, out)
			}
		})
	}
}
