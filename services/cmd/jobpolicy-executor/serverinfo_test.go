package main

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	policy "jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/servicemain"
	"jobpolicy.dev/services/internal/testengine"
	"jobpolicy.dev/services/internal/testenv"
)

var v1 = []string{"jobpolicy.v1"}

// without is what an engine says that lacks a capability.
func without(capability jobpolicyv1.Capability) *jobpolicyv1.GetServerInfoResponse {
	return &jobpolicyv1.GetServerInfoResponse{
		Version: "v9", ContractVersions: v1,
		Capabilities: slices.DeleteFunc(policy.Capabilities(), func(c jobpolicyv1.Capability) bool { return c == capability }),
	}
}

// parsed are the options of a command line.
func parsed(t *testing.T, args ...string) *options {
	t.Helper()
	o, flags := &options{}, servicemain.New(name, summary)
	o.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

// An engine that is too old is found before it is asked about an object of the kind that
// it does not know.
func TestAnEngineThatLacksSomething(t *testing.T) {
	cases := map[string]struct {
		info      *jobpolicyv1.GetServerInfoResponse
		err       error
		flags     []string
		wantError string
		wantLog   string
	}{
		"has all": {
			info:    &jobpolicyv1.GetServerInfoResponse{Version: "v9", ContractVersions: v1, Capabilities: policy.Capabilities()},
			wantLog: "policy engine connected",
		},
		"no CronJobs": {
			info:      without(jobpolicyv1.Capability_CAPABILITY_CRON_JOB),
			wantError: "engine v9 lacks CAPABILITY_CRON_JOB, which --controllers=cronjob-controller needs: upgrade the engine first",
			wantLog:   "too old",
		},
		"no CronJobs, and none are needed": {
			info: without(jobpolicyv1.Capability_CAPABILITY_CRON_JOB), flags: []string{"--controllers=*,-cronjob-controller"}, wantLog: "policy engine connected",
		},
		"no gangs": {
			info:      without(jobpolicyv1.Capability_CAPABILITY_POD_GROUPS),
			flags:     []string{"--feature-gates=WorkloadWithJob=true"},
			wantError: "CAPABILITY_POD_GROUPS, which --feature-gates=WorkloadWithJob=true needs",
			wantLog:   "too old",
		},
		"no options": {
			info:      without(jobpolicyv1.Capability_CAPABILITY_OPTIONS),
			wantError: "CAPABILITY_OPTIONS, which annotation jobpolicy.dev/policy needs",
			wantLog:   "too old",
		},
		"no nodes": {
			info:      without(jobpolicyv1.Capability_CAPABILITY_TERMINATION_DEADLINE_NODE),
			wantError: "CAPABILITY_TERMINATION_DEADLINE_NODE, which job.terminationDeadlineNode of a JobPolicy needs",
			wantLog:   "too old",
		},
		"no groups of the cluster": {
			info:      without(jobpolicyv1.Capability_CAPABILITY_CLUSTER_GROUPS),
			flags:     []string{"--cluster-group=reports=3"},
			wantError: "CAPABILITY_CLUSTER_GROUPS, which --cluster-group needs",
			wantLog:   "too old",
		},
		"no groups of the cluster, and none wanted": {info: without(jobpolicyv1.Capability_CAPABILITY_CLUSTER_GROUPS), wantLog: "policy engine connected"},
		"another contract": {
			info:      &jobpolicyv1.GetServerInfoResponse{Version: "v9", ContractVersions: []string{"jobpolicy.v2"}},
			wantError: `the contract jobpolicy.v1 (it has ["jobpolicy.v2"])`,
			wantLog:   "too old",
		},
		"too old to say":   {info: &jobpolicyv1.GetServerInfoResponse{Version: "v0", ContractVersions: v1}, wantLog: "policy engine connected"},
		"has no such call": {err: status.Error(codes.Unimplemented, "unknown"), wantLog: "does not say"},
		"does not tell us": {err: status.Error(codes.PermissionDenied, "no"), wantLog: "does not say"},
		"goes away":        {err: status.Error(codes.Unavailable, "away"), wantError: "asking the engine what it supports"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o, log := parsed(t, append([]string{"--engine=localhost:1", "--engine-insecure"}, tc.flags...)...), &testenv.Log{}
			s := newServerInfo(o.needs(), log.Logger())
			s.read = func(context.Context) (*jobpolicyv1.GetServerInfoResponse, error) { return tc.info, tc.err }
			for range 3 {
				testenv.WantError(t, s.check(t.Context()), tc.wantError)
			}
			if tc.wantLog != "" && log.Count(tc.wantLog) != 1 {
				t.Errorf("the log has %d lines with %q, want 1", log.Count(tc.wantLog), tc.wantLog)
			}
		})
	}
}

// With an engine to fall back to, one that is away does not matter. One that is too old does.
func TestAFallbackDoesNotHideAnEngineThatIsTooOld(t *testing.T) {
	remote := testengine.Start(t, testengine.Config{})
	o := parsed(t, "--engine="+remote.Address, "--engine-insecure", "--engine-fallback=embedded")
	unknown := need{jobpolicyv1.Capability(9999), "this test"}
	e, err := o.engine.newEngine([]need{unknown}, nil, noop.NewTracerProvider(), prometheus.NewRegistry(), (&testenv.Log{}).Logger())
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	if err := e.check.Run(t.Context()); !errors.Is(err, errTooOld) {
		t.Errorf("error %v, want %v", err, errTooOld)
	}
	remote.Shutdown(0)
	testenv.Eventually(t, func() error { return e.check.Run(t.Context()) })
}

// Two engines answer in turn, as in an upgrade, and one that is too old to say which it is.
func TestEachEngineThatDecidesIsLoggedOnce(t *testing.T) {
	log := &testenv.Log{}
	s := newServerInfo(nil, log.Logger())
	for range 3 {
		s.answered(jobpolicyv1grpc.Build{Version: "v1", RulesDigest: "aaaa"})
		s.answered(jobpolicyv1grpc.Build{Version: "v2", RulesDigest: "aaaa"})
		s.answered(jobpolicyv1grpc.Build{Version: "v2", RulesDigest: "bbbb"})
		s.answered(jobpolicyv1grpc.Build{})
	}
	if n := log.Count("first decision of this policy engine"); n != 3 {
		t.Errorf("%d lines, want 3:\n%s", n, log.String())
	}
}
