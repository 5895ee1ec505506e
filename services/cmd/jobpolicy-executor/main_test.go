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

// start starts the program, and looks for texts in what it prints.
func start(t *testing.T, args []string, wantCode int, want []string) {
	t.Helper()
	var printed bytes.Buffer
	if code := newProgram().Start(t.Context(), args, &printed, &printed); code != wantCode {
		t.Errorf("exit code = %d, want %d", code, wantCode)
	}
	for _, text := range want {
		if !strings.Contains(printed.String(), text) {
			t.Errorf("output lacks %q:\n%s", text, printed.String())
		}
	}
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
			wantCode: program.ExitOK, want: []string{"Kubernetes API:", "Policy engine:", "Jobs:", "Leader election:", "--kube-api-burst", "(default 30)", "(default 10m0s)"},
		},
		"version": {args: []string{"--version"}, wantCode: program.ExitOK, want: []string{"jobpolicy-executor devel"}},
		"a kubeconfig that is not there": {
			args:     []string{"--engine=embedded", "--kubeconfig", missing},
			wantCode: program.ExitFailed, want: []string{"--kubeconfig", missing},
		},
		"an authority that is not there": {
			args:     []string{"--engine=e:1", "--kubeconfig", testapi.Start(t).Kubeconfig, "--engine-ca-file", missing},
			wantCode: program.ExitFailed, want: []string{"--engine-ca-file", missing},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { start(t, tc.args, tc.wantCode, tc.want) })
	}
}

func TestCommandLinesThatAreRefused(t *testing.T) {
	cases := map[string]struct{ args, want []string }{
		"nothing":               {want: []string{"--engine is required"}},
		"an unknown flag":       {args: []string{"--engine=embedded", "--replace-build-in"}, want: []string{"--replace-build-in"}},
		"a word as a number":    {args: []string{"--engine=embedded", "--concurrent-job-syncs=some"}, want: []string{"--concurrent-job-syncs"}},
		"an unknown fallback":   {args: []string{"--engine=e:1", "--engine-fallback=luck"}, want: []string{"--engine-fallback"}},
		"no time for an answer": {args: []string{"--engine=e:1", "--engine-timeout=0s"}, want: []string{"--engine-timeout"}},
		"a longest delay below the first": {
			args: []string{"--engine=e:1", "--max-pod-failure-backoff=1s"},
			want: []string{"--max-pod-failure-backoff", "--pod-failure-backoff"},
		},
		"a delay above the contract's": {
			args: []string{"--engine=e:1", "--max-pod-failure-backoff=25h"},
			want: []string{"--max-pod-failure-backoff"},
		},
		"no delay at all": {args: []string{"--engine=e:1", "--pod-failure-backoff=0s"}, want: []string{"--pod-failure-backoff"}},
		"numbers of pods out of range": {
			args: []string{"--engine=e:1", "--max-pod-changes-per-sync=0", "--max-uncounted-pods=100001"},
			want: []string{"--max-pod-changes-per-sync", "--max-uncounted-pods"},
		},
		"rates out of range": {
			args: []string{"--engine=e:1", "--kube-api-qps=0", "--kube-api-burst=0"},
			want: []string{"--kube-api-qps", "--kube-api-burst"},
		},
		"a rate that is no number": {
			args: []string{"--engine=e:1", "--kube-api-qps=NaN"},
			want: []string{"--kube-api-qps must be a number above 0, is NaN"},
		},
		"a rate without a limit": {
			args: []string{"--engine=e:1", "--kube-api-qps=Inf"},
			want: []string{"--kube-api-qps must be a number above 0, is +Inf"},
		},
		"a gate that nobody knows": {
			args: []string{"--engine=e:1", "--feature-gates=WorkloadWithJobs=true"},
			want: []string{"--feature-gates", "WorkloadWithJobs", "there are JobBackoffLimitPerIndex"},
		},
		"no manager": {args: []string{"--engine=e:1", "--managed-by="}, want: []string{"--managed-by"}},
		"times of election that do not go": {
			args: []string{"--engine=e:1", "--leader-elect-renew-deadline=20s"},
			want: []string{"--leader-elect-renew-deadline"},
		},
		"a namespace that cannot be": {
			args: []string{"--engine=e:1", "--namespaces=team-a,Team_B"},
			want: []string{`--namespaces must be names of namespaces, has "Team_B"`},
		},
		"an unknown reaction": {
			args: []string{"--engine=e:1", "--on-second-controller=ignore"},
			want: []string{`--on-second-controller must be report or stand-down, is "ignore"`},
		},
		"an unknown mode": {
			args: []string{"--engine=e:1", "--mode=watch", "--shadow-rest=0s"},
			want: []string{`--mode must be manage or shadow, is "watch"`, "--shadow-rest must be above 0s, is 0s"},
		},
		"a shadow that would write": {
			args: []string{"--engine=e:1", "--mode=shadow", "--replace-builtin", "--feature-gates=WorkloadWithJob=true", "--certificate-authority-secret=a/a", "--issue-client-certificate=a/b=c"},
			want: []string{"--mode=shadow excludes --replace-builtin", "--mode=shadow excludes the feature gate WorkloadWithJob", "--mode=shadow excludes --certificate-authority-secret"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { start(t, tc.args, program.ExitUsage, tc.want) })
	}
}

func TestFlagsOfCertificatesThatAreRefused(t *testing.T) {
	cases := map[string]struct{ args, want []string }{
		"files for an engine in this process": {
			args: []string{"--engine=embedded", "--engine-ca-file=x"},
			want: []string{"--engine=embedded", "--engine-ca-file"},
		},
		"a certificate without a key": {args: []string{"--engine=e:1", "--engine-cert-file=x"}, want: []string{"--engine-key-file"}},
		"a Secret and files": {
			args: []string{"--engine=e:1", "--engine-tls-secret=a/b", "--engine-ca-file=x"},
			want: []string{"--engine-tls-secret excludes --engine-ca-file"},
		},
		"a Secret without namespace": {
			args: []string{"--engine=e:1", "--engine-tls-secret=b"},
			want: []string{`--engine-tls-secret must name a Secret as namespace/name, is "b"`},
		},
		"certificates without authority": {
			args: []string{"--engine=e:1", "--issue-client-certificate=a/b=c"},
			want: []string{"need --certificate-authority-secret"},
		},
		"a certificate for nobody": {
			args: []string{"--engine=e:1", "--certificate-authority-secret=a/b", "--issue-client-certificate=a/b"},
			want: []string{`--issue-client-certificate must be namespace/name=name, is "a/b"`},
		},
		"an authority without certificates": {
			args: []string{"--engine=e:1", "--certificate-authority-secret=a/b"},
			want: []string{"--certificate-authority-secret needs --issue-server-certificate"},
		},
		"one Secret for two certificates": {
			args: []string{"--engine=e:1", "--certificate-authority-secret=a/b", "--issue-server-certificate=a/c=d", "--issue-client-certificate=a/c=d"},
			want: []string{"--issue-client-certificate must name different Secrets, a/c is named twice"},
		},
		"one Secret for the authority and a certificate": {
			args: []string{"--engine=e:1", "--certificate-authority-secret=a/b", "--issue-client-certificate=a/b=c"},
			want: []string{"must name different Secrets, a/b is named twice"},
		},
		"an empty DNS name": {
			args: []string{"--engine=e:1", "--certificate-authority-secret=a/b", "--issue-server-certificate=a/c=x,,y"},
			want: []string{`--issue-server-certificate must have DNS names, has ""`},
		},
		"a DNS name with a space": {
			args: []string{"--engine=e:1", "--certificate-authority-secret=a/b", "--issue-server-certificate=a/c=x, y"},
			want: []string{`--issue-server-certificate must have DNS names, has " y"`},
		},
		"an address as a DNS name": {
			args: []string{"--engine=e:1", "--certificate-authority-secret=a/b", "--issue-server-certificate=a/c=10.0.0.1"},
			want: []string{`--issue-server-certificate must have DNS names, has "10.0.0.1"`},
		},
		"certificates that end too soon": {
			args: []string{"--engine=e:1", "--certificate-authority-secret=a/a", "--issue-client-certificate=a/b=c", "--certificate-duration=20m"},
			want: []string{"--certificate-duration must be at least three times --certificate-propagation (10m0s), is 20m0s"},
		},
		"an authority that ends before a certificate of a century": {
			args: []string{"--engine=e:1", "--certificate-authority-secret=a/a", "--issue-client-certificate=a/b=c", "--certificate-duration=1000000h"},
			want: []string{"--certificate-authority-duration must be at least three times --certificate-duration (1000000h0m0s)"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { start(t, tc.args, program.ExitUsage, tc.want) })
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

// The lease names the pod in full. The name of its host is cut after 63 bytes.
func TestTheLeaseNamesThePod(t *testing.T) {
	api := testapi.Start(t)
	pod := strings.Repeat("long-", 13) + "executor-7d4b9c8f6-x2x9k"
	p := testprocess.Start(t, []string{"POD_NAME=" + pod}, "--kubeconfig", api.Kubeconfig, "--engine=embedded", "--http-address=127.0.0.1:0")
	testprocess.Readyz(t, p.Logged(t, "service started", "http"), http.StatusOK, "[+] caches: ok")
	if holder := api.Holder(); !strings.HasPrefix(holder, pod+"_") || holder == pod+"_" {
		t.Errorf("the lease is held by %q, want %s_ and more", holder, pod)
	}
}

func TestReplicasLeadInTurn(t *testing.T) {
	api := testapi.Start(t)
	args := []string{
		"--kubeconfig", api.Kubeconfig, "--engine=embedded", "--http-address=127.0.0.1:0",
		"--leader-elect-lease-duration=1h", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=100ms",
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
