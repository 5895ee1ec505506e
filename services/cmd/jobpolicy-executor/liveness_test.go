package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"jobpolicy.dev/executor"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/testapi"
	"jobpolicy.dev/services/internal/testenv"
	"jobpolicy.dev/services/internal/testprocess"
)

// hangEnv is set in a process whose reconciles never end, which would be a defect.
const hangEnv = "JOBPOLICY_TEST_HANGS"

// hanging heeds no deadline.
type hanging struct{ executor.Decider }

func (hanging) DecideJob(context.Context, *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	select {}
}

// The kubelet restarts a leader whose reconcile loop has stalled, and no standby.
func TestALeaderThatStandsStillIsUnhealthy(t *testing.T) {
	api := testapi.Start(t, jobsThatNeedAPod(20)...)
	start := func() string {
		p := testprocess.Start(t, []string{hangEnv + "=1"}, "--kubeconfig", api.Kubeconfig, "--engine=embedded", "--http-address=127.0.0.1:0")
		return "http://" + p.Logged(t, "service started", "http") + "/healthz"
	}
	replicas := []string{start(), start()}
	testenv.Eventually(t, func() error {
		unhealthy := ""
		for _, url := range replicas {
			code, body, err := testprocess.Get(url)
			if err != nil {
				return err
			}
			if code != http.StatusOK {
				unhealthy += body
			}
		}
		if strings.Count(unhealthy, "[-] progress: queue job is stalled") != 1 {
			return fmt.Errorf("/healthz of both replicas: %q", unhealthy)
		}
		return nil
	})
	time.Sleep(2 * time.Second) // twice what the leader has needed
	for _, url := range replicas {
		if code, _, err := testprocess.Get(url); err == nil && code == http.StatusOK {
			return
		}
	}
	t.Error("the standby is unhealthy, too")
}
