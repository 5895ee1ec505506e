package main

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/services/internal/servicemain"
	"jobpolicy.dev/services/internal/testengine"
	"jobpolicy.dev/services/internal/testenv"
)

func TestMain(m *testing.M) {
	testenv.Main(m, func() {
		if file := os.Getenv(clockEnv); file != "" {
			wallClock = clockIn(file)
		}
		if os.Getenv(hangEnv) != "" {
			stallTimeout, wrapDecider = time.Second, func(executor.Decider) executor.Decider { return hanging{} }
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
			args:     []string{"--help"},
			wantCode: servicemain.ExitOK, want: []string{"Kubernetes API:", "Policy engine:", "Jobs:", "Leader election:", "--kube-api-burst", "(default 30)", "(default 10m0s)"},
		},
		"version": {args: []string{"--version"}, wantCode: servicemain.ExitOK, want: []string{"jobpolicy-executor devel"}},
		"nothing": {wantCode: servicemain.ExitUsage, want: []string{"--engine is required"}},
		"a kubeconfig that is not there": {
			args:     []string{"--engine=embedded", "--kubeconfig", missing},
			wantCode: servicemain.ExitFailed, want: []string{"--kubeconfig", missing},
		},
		"an authority that is not there": {
			args:     []string{"--engine=e:1", "--kubeconfig", testenv.StartAPI(t).Kubeconfig, "--engine-ca-file", missing},
			wantCode: servicemain.ExitFailed, want: []string{"--engine-ca-file", missing},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { testenv.CommandLine(t, newProgram().Start, tc.args, tc.wantCode, tc.want) })
	}
}

// refuses checks command lines that cannot be used. A case has arguments besides an
// engine's address, and texts of what is printed.
func refuses(t *testing.T, cases map[string][2][]string) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			testenv.CommandLine(t, newProgram().Start, append([]string{"--engine=e:1"}, tc[0]...), servicemain.ExitUsage, tc[1])
		})
	}
}

func TestCommandLinesThatAreRefused(t *testing.T) {
	refuses(t, map[string][2][]string{
		"an unknown flag":                     {{"--engine=embedded", "--replace-build-in"}, {"--replace-build-in"}},
		"a word as a number":                  {{"--engine=embedded", "--concurrent-job-syncs=some"}, {"--concurrent-job-syncs"}},
		"an unknown fallback":                 {{"--engine-fallback=luck"}, {"--engine-fallback"}},
		"no time for an answer":               {{"--engine-timeout=0s"}, {"--engine-timeout"}},
		"a longest delay below the first":     {{"--max-pod-failure-backoff=1s"}, {"--max-pod-failure-backoff", "--pod-failure-backoff"}},
		"a delay above the contract's":        {{"--max-pod-failure-backoff=25h"}, {"--max-pod-failure-backoff"}},
		"no delay at all":                     {{"--pod-failure-backoff=0s"}, {"--pod-failure-backoff"}},
		"numbers of pods out of range":        {{"--max-pod-changes-per-sync=0", "--max-uncounted-pods=100001", "--max-unseen-pods-per-hour=0"}, {"--max-pod-changes-per-sync", "--max-uncounted-pods", "--max-unseen-pods-per-hour"}},
		"rates out of range":                  {{"--kube-api-qps=0", "--kube-api-burst=0"}, {"--kube-api-qps", "--kube-api-burst"}},
		"a rate that is no number":            {{"--kube-api-qps=NaN"}, {"--kube-api-qps must be a number above 0, is NaN"}},
		"a rate without a limit":              {{"--kube-api-qps=Inf"}, {"--kube-api-qps must be a number above 0, is +Inf"}},
		"a gate that nobody knows":            {{"--feature-gates=WorkloadWithJobs=true"}, {"--feature-gates", "WorkloadWithJobs", "there are JobBackoffLimitPerIndex"}},
		"no manager":                          {{"--managed-by="}, {"--managed-by"}},
		"times of election that do not go":    {{"--leader-elect-renew-deadline=20s"}, {"--leader-elect-renew-deadline"}},
		"a group of the cluster without end":  {{"--cluster-group=reports"}, {`--cluster-group: "reports": expected NAME=N, such as reports=3`}},
		"a group of the cluster without runs": {{"--cluster-group=reports=3", "--cluster-group=batch=0"}, {`--cluster-group: "batch=0": expected NAME=N, with a name of 1 to 63 bytes and a number of runs from 1 to 10000`}},
		"a namespace that cannot be":          {{"--namespaces=team-a,Team_B"}, {`--namespaces must be names of namespaces, has "Team_B"`}},
		"an unknown reaction":                 {{"--on-second-controller=ignore"}, {`--on-second-controller must be report or stand-down, is "ignore"`}},
		"an unknown mode":                     {{"--mode=watch", "--shadow-rest=0s"}, {`--mode must be manage or shadow, is "watch"`, "--shadow-rest must be above 0s, is 0s"}},
		"a shadow that would write": {
			{"--mode=shadow", "--replace-builtin", "--feature-gates=WorkloadWithJob=true", "--certificate-authority-secret=a/a", "--issue-client-certificate=a/b=c"},
			{"--mode=shadow excludes --replace-builtin", "--mode=shadow excludes the feature gate WorkloadWithJob", "--mode=shadow excludes --certificate-authority-secret"},
		},
	})
}

func TestFlagsOfCertificatesThatAreRefused(t *testing.T) {
	refuses(t, map[string][2][]string{
		"files for an engine in this process": {{"--engine=embedded", "--engine-ca-file=x"}, {"--engine=embedded", "--engine-ca-file"}},
		"a certificate without a key":         {{"--engine-cert-file=x"}, {"--engine-key-file"}},
		"a Secret and files":                  {{"--engine-tls-secret=a/b", "--engine-ca-file=x"}, {"--engine-tls-secret excludes --engine-ca-file"}},
		"a Secret without namespace":          {{"--engine-tls-secret=b"}, {`--engine-tls-secret must name a Secret as namespace/name, is "b"`}},
		"certificates without authority":      {{"--issue-client-certificate=a/b=c"}, {"need --certificate-authority-secret"}},
		"a certificate for nobody": {
			{"--certificate-authority-secret=a/b", "--issue-client-certificate=a/b"},
			{`--issue-client-certificate must be namespace/name=name, is "a/b"`},
		},
		"an authority without certificates": {{"--certificate-authority-secret=a/b"}, {"--certificate-authority-secret needs --issue-server-certificate"}},
		"one Secret for two certificates": {
			{"--certificate-authority-secret=a/b", "--issue-server-certificate=a/c=d", "--issue-client-certificate=a/c=d"},
			{"--issue-client-certificate must name different Secrets, a/c is named twice"},
		},
		"one Secret for the authority and a certificate": {
			{"--certificate-authority-secret=a/b", "--issue-client-certificate=a/b=c"},
			{"must name different Secrets, a/b is named twice"},
		},
		"an empty DNS name": {{"--certificate-authority-secret=a/b", "--issue-server-certificate=a/c=x,,y"}, {`--issue-server-certificate must have DNS names, has ""`}},
		"a DNS name with a space": {
			{"--certificate-authority-secret=a/b", "--issue-server-certificate=a/c=x, y"},
			{`--issue-server-certificate must have DNS names, has " y"`},
		},
		"an address as a DNS name": {
			{"--certificate-authority-secret=a/b", "--issue-server-certificate=a/c=10.0.0.1"},
			{`--issue-server-certificate must have DNS names, has "10.0.0.1"`},
		},
		"certificates that end too soon": {
			{"--certificate-authority-secret=a/a", "--issue-client-certificate=a/b=c", "--certificate-duration=20m"},
			{"--certificate-duration must be at least three times --certificate-propagation (10m0s), is 20m0s"},
		},
		"Secrets that everybody sees at once": {
			{"--certificate-authority-secret=a/a", "--issue-client-certificate=a/b=c", "--certificate-propagation=0s"},
			{"--certificate-propagation must be above 0s, is 0s"},
		},
		"an authority that ends before a certificate of a century": {
			{"--certificate-authority-secret=a/a", "--issue-client-certificate=a/b=c", "--certificate-duration=1000000h"},
			{"--certificate-authority-duration must be at least three times --certificate-duration (1000000h0m0s)"},
		},
	})
}

func TestReadyOnlyWithCachesAndEngine(t *testing.T) {
	api := testenv.StartAPI(t)
	api.HoldLists.Store(true)
	first := testengine.Start(t, testengine.Config{})
	first.Shutdown(0) // its address is free now

	p := testenv.Start(t, nil, "--kubeconfig", api.Kubeconfig, "--engine", first.Address, "--engine-insecure",
		"--leader-elect=false", "--http-address=127.0.0.1:0")
	address := p.Logged(t, "service started", "http")
	testenv.Readyz(t, address, http.StatusServiceUnavailable, "[-] caches: caches are not synced")
	testenv.Readyz(t, address, http.StatusServiceUnavailable, "[-] engine: engine "+first.Address+" does not answer")

	api.HoldLists.Store(false)
	testenv.Readyz(t, address, http.StatusServiceUnavailable, "[+] caches: ok")
	second := testengine.Start(t, testengine.Config{Address: first.Address})
	testenv.Readyz(t, address, http.StatusOK, "[+] engine: ok")

	second.Drain()
	testenv.Readyz(t, address, http.StatusServiceUnavailable, "[-] engine")
	testengine.Start(t, testengine.Config{Address: restart(second)})
	testenv.Readyz(t, address, http.StatusOK, "")

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
	code, body, err := testenv.Get("http://" + address + "/debug/decisions")
	if err != nil || code != http.StatusOK || strings.TrimSpace(body) != "[]" {
		t.Errorf("/debug/decisions = %d %q, %v; want an empty list", code, body, err)
	}
	code, body, err = testenv.Get("http://" + address + "/metrics")
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
	_, body, err := testenv.Get("http://" + address + "/metrics")
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
			api := testenv.StartAPI(t)
			p := testenv.Start(t, nil, append(args, "--kubeconfig", api.Kubeconfig, "--leader-elect=false", "--http-address=127.0.0.1:0")...)
			testenv.Readyz(t, p.Logged(t, "service started", "http"), http.StatusOK, "[+] engine: ok")
			p.Signal(t, syscall.SIGINT)
			if code := p.ExitCode(t); code != 0 {
				t.Errorf("exit code = %d, want 0", code)
			}
		})
	}
}

// The lease names the pod in full. The name of its host is cut after 63 bytes.
func TestTheLeaseNamesThePod(t *testing.T) {
	api := testenv.StartAPI(t)
	pod := strings.Repeat("long-", 13) + "executor-7d4b9c8f6-x2x9k"
	p := testenv.Start(t, []string{"POD_NAME=" + pod}, "--kubeconfig", api.Kubeconfig, "--engine=embedded", "--http-address=127.0.0.1:0")
	testenv.Readyz(t, p.Logged(t, "service started", "http"), http.StatusOK, "[+] caches: ok")
	if holder := api.Holder(); !strings.HasPrefix(holder, pod+"_") || holder == pod+"_" {
		t.Errorf("the lease is held by %q, want %s_ and more", holder, pod)
	}
}

func TestReplicasLeadInTurn(t *testing.T) {
	api := testenv.StartAPI(t)
	args := []string{
		"--kubeconfig", api.Kubeconfig, "--engine=embedded", "--http-address=127.0.0.1:0",
		"--leader-elect-lease-duration=1h", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=100ms",
	}
	first := testenv.Start(t, nil, args...)
	firstAddress := first.Logged(t, "service started", "http")
	testenv.Readyz(t, firstAddress, http.StatusOK, "")
	assertLeads(t, firstAddress, "1")
	holder := api.Holder()

	second := testenv.Start(t, nil, args...)
	secondAddress := second.Logged(t, "service started", "http")
	testenv.Readyz(t, secondAddress, http.StatusOK, "standing by, "+holder+" leads")
	assertLeads(t, secondAddress, "0")

	first.Signal(t, syscall.SIGTERM)
	if code := first.ExitCode(t); code != 0 {
		t.Errorf("exit code of the leader = %d, want 0", code)
	}
	testenv.Readyz(t, secondAddress, http.StatusOK, "[+] caches: ok")
	assertLeads(t, secondAddress, "1")

	api.RefuseRenewals.Store(true)
	if code := second.ExitCode(t); code != servicemain.ExitFailed {
		t.Errorf("exit code after losing the lease = %d, want %d", code, servicemain.ExitFailed)
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
