package main

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/services/internal/program"
	"jobpolicy.dev/services/internal/testapi"
	"jobpolicy.dev/services/internal/testengine"
	"jobpolicy.dev/services/internal/testenv"
	"jobpolicy.dev/services/internal/testprocess"
)

func TestMain(m *testing.M) {
	testprocess.Main(m, func() {
		if file := os.Getenv(clockEnv); file != "" {
			wallClock = clockIn(file)
		}
		if os.Getenv(hangEnv) != "" {
			standStill, wrapDecider = time.Second, func(executor.Decider) executor.Decider { return hanging{} }
		}
		main()
	})
}

func TestCommandLine(t *testing.T) {
	missing := t.TempDir() + "/missing"
	cases := map[string]struct {
		args     []string
		wantCode int
		want     []string // in what is printed
	}{
		"help": {
			[]string{"--help"},
			program.ExitOK,
			[]string{"Kubernetes API:", "Policy engine:", "Jobs:", "Leader election:", "--kube-api-burst", "(default 30)", "(default 10m0s)"},
		},
		"version":            {[]string{"--version"}, program.ExitOK, []string{"jobpolicy-executor devel"}},
		"nothing":            {nil, program.ExitUsage, []string{"--engine is required"}},
		"an unknown flag":    {[]string{"--engine=embedded", "--replace-build-in"}, program.ExitUsage, []string{"--replace-build-in"}},
		"a word as a number": {[]string{"--engine=embedded", "--concurrent-job-syncs=some"}, program.ExitUsage, []string{"--concurrent-job-syncs"}},
		"files for an engine in this process": {
			[]string{"--engine=embedded", "--engine-ca-file=x"}, program.ExitUsage, []string{"--engine=embedded", "--engine-ca-file"},
		},
		"an unknown fallback":              {[]string{"--engine=e:1", "--engine-fallback=luck"}, program.ExitUsage, []string{"--engine-fallback"}},
		"no time for an answer":            {[]string{"--engine=e:1", "--engine-timeout=0s"}, program.ExitUsage, []string{"--engine-timeout"}},
		"a certificate without a key":      {[]string{"--engine=e:1", "--engine-cert-file=x"}, program.ExitUsage, []string{"--engine-key-file"}},
		"a longest delay below the first":  {[]string{"--engine=e:1", "--max-pod-failure-backoff=1s"}, program.ExitUsage, []string{"--max-pod-failure-backoff", "--pod-failure-backoff"}},
		"a delay above the contract's":     {[]string{"--engine=e:1", "--max-pod-failure-backoff=25h"}, program.ExitUsage, []string{"--max-pod-failure-backoff"}},
		"no delay at all":                  {[]string{"--engine=e:1", "--pod-failure-backoff=0s"}, program.ExitUsage, []string{"--pod-failure-backoff"}},
		"numbers of pods out of range":     {[]string{"--engine=e:1", "--max-pod-changes-per-sync=0", "--max-uncounted-pods=100001"}, program.ExitUsage, []string{"--max-pod-changes-per-sync", "--max-uncounted-pods"}},
		"rates out of range":               {[]string{"--engine=e:1", "--kube-api-qps=0", "--kube-api-burst=0"}, program.ExitUsage, []string{"--kube-api-qps", "--kube-api-burst"}},
		"a gate that nobody knows":         {[]string{"--engine=e:1", "--feature-gates=WorkloadWithJobs=true"}, program.ExitUsage, []string{"--feature-gates", "WorkloadWithJobs", "there are JobBackoffLimitPerIndex"}},
		"no manager":                       {[]string{"--engine=e:1", "--managed-by="}, program.ExitUsage, []string{"--managed-by"}},
		"times of election that do not go": {[]string{"--engine=e:1", "--leader-elect-renew-deadline=20s"}, program.ExitUsage, []string{"--leader-elect-renew-deadline"}},
		"a kubeconfig that is not there":   {[]string{"--engine=embedded", "--kubeconfig", missing}, program.ExitFailed, []string{"--kubeconfig", missing}},
		"a namespace that cannot be":       {[]string{"--engine=e:1", "--namespaces=team-a,Team_B"}, program.ExitUsage, []string{`--namespaces must be names of namespaces, has "Team_B"`}},
		"an unknown reaction":              {[]string{"--engine=e:1", "--on-second-controller=ignore"}, program.ExitUsage, []string{`--on-second-controller must be report or stand-down, is "ignore"`}},
		"an unknown mode":                  {[]string{"--engine=e:1", "--mode=watch", "--shadow-rest=0s"}, program.ExitUsage, []string{`--mode must be manage or shadow, is "watch"`, "--shadow-rest must be above 0s, is 0s"}},
		"a shadow that would write": {
			[]string{"--engine=e:1", "--mode=shadow", "--replace-builtin", "--feature-gates=WorkloadWithJob=true", "--certificate-authority-secret=a/b", "--issue-client-certificate=a/b=c"},
			program.ExitUsage,
			[]string{"--mode=shadow excludes --replace-builtin", "--mode=shadow excludes the feature gate WorkloadWithJob", "--mode=shadow excludes --certificate-authority-secret"},
		},
		"a Secret and files": {
			[]string{"--engine=e:1", "--engine-tls-secret=a/b", "--engine-ca-file=x"}, program.ExitUsage, []string{"--engine-tls-secret excludes --engine-ca-file"},
		},
		"a Secret without namespace": {[]string{"--engine=e:1", "--engine-tls-secret=b"}, program.ExitUsage, []string{`--engine-tls-secret must name a Secret as namespace/name, is "b"`}},
		"certificates without authority": {
			[]string{"--engine=e:1", "--issue-client-certificate=a/b=c"}, program.ExitUsage, []string{"need --certificate-authority-secret"},
		},
		"a certificate for nobody": {
			[]string{"--engine=e:1", "--certificate-authority-secret=a/b", "--issue-client-certificate=a/b"}, program.ExitUsage, []string{`--issue-client-certificate must be namespace/name=name, is "a/b"`},
		},
		"an authority without certificates": {
			[]string{"--engine=e:1", "--certificate-authority-secret=a/b"}, program.ExitUsage, []string{"--certificate-authority-secret needs --issue-server-certificate"},
		},
		"certificates that end too soon": {
			[]string{"--engine=e:1", "--certificate-authority-secret=a/b", "--issue-client-certificate=a/b=c", "--certificate-duration=20m"},
			program.ExitUsage,
			[]string{"--certificate-duration must be at least three times --certificate-propagation (10m0s), is 20m0s"},
		},
		"an authority that is not there": {[]string{"--engine=e:1", "--kubeconfig", testapi.Start(t).Kubeconfig, "--engine-ca-file", missing}, program.ExitFailed, []string{"--engine-ca-file", missing}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var printed bytes.Buffer
			code := newProgram().Start(t.Context(), tc.args, &printed, &printed)
			if code != tc.wantCode {
				t.Errorf("exit code = %d, want %d", code, tc.wantCode)
			}
			for _, want := range tc.want {
				if !strings.Contains(printed.String(), want) {
					t.Errorf("output lacks %q:\n%s", want, printed.String())
				}
			}
		})
	}
}

func TestReadyOnlyWithCachesAndEngine(t *testing.T) {
	api := testapi.Start(t)
	api.HoldLists.Store(true)
	first := testengine.Start(t, testengine.Config{})
	first.Shutdown(0) // its address is free now

	p := testprocess.Start(t, nil, "--kubeconfig", api.Kubeconfig, "--engine", first.Address, "--engine-insecure",
		"--leader-elect=false", "--http-address=127.0.0.1:0")
	address := p.Logged(t, "service started", "http")
	testprocess.Readyz(t, address, http.StatusServiceUnavailable, "[-] caches: caches are not synced")
	testprocess.Readyz(t, address, http.StatusServiceUnavailable, "[-] engine: engine "+first.Address+" does not answer")

	api.HoldLists.Store(false)
	testprocess.Readyz(t, address, http.StatusServiceUnavailable, "[+] caches: ok")
	second := testengine.Start(t, testengine.Config{Address: first.Address})
	testprocess.Readyz(t, address, http.StatusOK, "[+] engine: ok")

	second.Drain()
	testprocess.Readyz(t, address, http.StatusServiceUnavailable, "[-] engine")
	testengine.Start(t, testengine.Config{Address: restart(second)})
	testprocess.Readyz(t, address, http.StatusOK, "")

	assertDebugAndMetrics(t, address)
	p.Signal(t, syscall.SIGTERM)
	if code := p.ExitCode(t); code != 0 {
		t.Errorf("exit code = %d, want 0", code)
	}
}

func restart(e *testengine.Engine) (address string) {
	e.Shutdown(0)
	return e.Address
}

func assertDebugAndMetrics(t *testing.T, address string) {
	t.Helper()
	code, body, err := testprocess.Get("http://" + address + "/debug/decisions")
	if err != nil || code != http.StatusOK || strings.TrimSpace(body) != "[]" {
		t.Errorf("/debug/decisions = %d %q, %v; want an empty list", code, body, err)
	}
	code, body, err = testprocess.Get("http://" + address + "/metrics")
	if err != nil || code != http.StatusOK {
		t.Errorf("/metrics = %d, %v:\n%s", code, err, body)
	}
	for _, want := range []string{
		`program="jobpolicy-executor"`, "go_goroutines ",
		`workqueue_depth{name="job"}`, `workqueue_depth{name="job_orphan_pod"}`, `workqueue_depth{name="cronjob"}`, `workqueue_depth{name="ttl_jobs_to_delete"}`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("/metrics lacks %s:\n%s", want, body)
		}
	}
}

// assertLeads reads from the metrics whether a replica leads: 1 or 0.
func assertLeads(t *testing.T, address, want string) {
	t.Helper()
	_, body, err := testprocess.Get("http://" + address + "/metrics")
	if line := `leader_election_master_status{name="jobpolicy-executor"} ` + want; err != nil || !strings.Contains(body, line) {
		t.Errorf("/metrics lacks %s, %v:\n%s", line, err, body)
	}
}

func TestEmbeddedEngineAlwaysAnswers(t *testing.T) {
	away := testengine.Start(t, testengine.Config{})
	away.Shutdown(0)
	cases := map[string][]string{
		"the engine in this process":                    {"--engine=embedded"},
		"an engine that is away, with one to fall back": {"--engine=" + away.Address, "--engine-insecure", "--engine-fallback=embedded"},
	}
	for name, args := range cases {
		t.Run(name, func(t *testing.T) {
			api := testapi.Start(t)
			p := testprocess.Start(t, nil, append(args, "--kubeconfig", api.Kubeconfig, "--leader-elect=false", "--http-address=127.0.0.1:0")...)
			testprocess.Readyz(t, p.Logged(t, "service started", "http"), http.StatusOK, "[+] engine: ok")
			p.Signal(t, syscall.SIGINT)
			if code := p.ExitCode(t); code != 0 {
				t.Errorf("exit code = %d, want 0", code)
			}
		})
	}
}

func TestReplicasLeadInTurn(t *testing.T) {
	api := testapi.Start(t)
	args := []string{
		"--kubeconfig", api.Kubeconfig, "--engine=embedded", "--http-address=127.0.0.1:0",
		"--leader-elect-lease-duration=1h", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=100ms",
	}
	first := testprocess.Start(t, nil, args...)
	firstAddress := first.Logged(t, "service started", "http")
	testprocess.Readyz(t, firstAddress, http.StatusOK, "")
	assertLeads(t, firstAddress, "1")
	holder := api.Holder()

	second := testprocess.Start(t, nil, args...)
	secondAddress := second.Logged(t, "service started", "http")
	testprocess.Readyz(t, secondAddress, http.StatusOK, "standing by, "+holder+" leads")
	assertLeads(t, secondAddress, "0")

	first.Signal(t, syscall.SIGTERM)
	if code := first.ExitCode(t); code != 0 {
		t.Errorf("exit code of the leader = %d, want 0", code)
	}
	testprocess.Readyz(t, secondAddress, http.StatusOK, "[+] caches: ok")
	assertLeads(t, secondAddress, "1")

	api.RefuseRenewals.Store(true)
	if code := second.ExitCode(t); code != program.ExitFailed {
		t.Errorf("exit code after losing the lease = %d, want %d", code, program.ExitFailed)
	}
	testenv.Eventually(t, func() error {
		if second.Log.Count("leader lease lost") == 0 {
			return errors.New("the loss is not logged")
		}
		return nil
	})
}

func TestAJobsWritesFollowTheRateLimit(t *testing.T) {
	for qps, want := range map[float32]int{0.5: 2, 20: 4, 100: 12, 1e6: executor.DefaultJobWrites} {
		if got := jobWrites(qps); got != want {
			t.Errorf("%g requests per second: %d writes, want %d", qps, got, want)
		}
	}
	for qps, want := range map[float32]int{20: 4, 139: 15, 140: executor.DefaultLoneJobWrites} {
		if got := loneJobWrites(qps); got != want {
			t.Errorf("%g requests per second: %d writes of a Job that is alone, want %d", qps, got, want)
		}
	}
}
