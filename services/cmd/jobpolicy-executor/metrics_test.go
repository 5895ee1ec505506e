package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"jobpolicy.dev/services/internal/testenv"
)

// A running executor says how many Jobs it manages, what it asks of the API server, and that
// it is alive; its pages list what they are asked for.
func TestARunningExecutorShowsItsJobs(t *testing.T) {
	api := testenv.StartAPI(t, jobsThatNeedAPod(2)...)
	p := testenv.Start(t, nil, "--kubeconfig", api.Kubeconfig, "--engine=embedded", "--leader-elect=false", "--http-address=127.0.0.1:0")
	base := "http://" + p.Logged(t, "service started", "http")
	await := func(path string, want ...string) {
		testenv.Eventually(t, func() error {
			code, body, err := testenv.Get(base + path)
			if err != nil || code != http.StatusOK {
				return fmt.Errorf("%s: %d %v", path, code, err)
			}
			for _, text := range want {
				if !strings.Contains(body, text) {
					return fmt.Errorf("%s lacks %q", path, text)
				}
			}
			return nil
		})
	}
	await("/metrics", "jobpolicy_managed_jobs 2\n", `jobpolicy_waiting_jobs{reason="pod_failure_backoff"} 0`, `jobpolicy_rejected_jobs{reason="INVALID_REQUEST"} 0`,
		"jobpolicy_jobs_without_retries 0\n", "jobpolicy_job_without_progress_seconds ", `jobpolicy_hindered_pods{reason="other"} 0`, `jobpolicy_missed_run_cronjobs{reason="starting_deadline"} 0`,
		`rest_client_requests_total{code="200",host="`)
	await("/debug/decisions?name=job-1", `"name":"job-1"`)
	await("/debug/cronjobs?format=json", "[]")
	await("/healthz", "ok\n")
	if _, body, err := testenv.Get(base + "/debug/decisions?name=job-1"); err != nil || strings.Contains(body, "job-0") {
		t.Errorf("%v, want only job-1 in %s", err, body)
	}
}
