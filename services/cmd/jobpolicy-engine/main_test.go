package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"jobpolicy.dev/services/internal/decider"
	"jobpolicy.dev/services/internal/servicemain"
	"jobpolicy.dev/services/internal/testenv"
	"jobpolicy.dev/services/internal/tlsfiles"
)

// patience ends calls that hang; it is no expectation.
const patience = 20 * time.Second

func TestMain(m *testing.M) { testenv.Main(m, main) }

func TestCommandLine(t *testing.T) {
	missing := t.TempDir() + "/missing.pem"
	cases := map[string]struct {
		args     []string
		wantCode int
		want     []string // in what is printed
	}{
		"help": {
			args:     []string{"--help"},
			wantCode: servicemain.ExitOK,
			want:     []string{"Serving:", "TLS and callers:", "Shutdown:", "Logging:", "--client-ca-file", "(default 20s)"},
		},
		"version":            {args: []string{"--version"}, wantCode: servicemain.ExitOK, want: []string{"jobpolicy-engine devel"}},
		"nothing, so no TLS": {wantCode: servicemain.ExitUsage, want: []string{"--tls-cert-file", "--tls-private-key-file", "--insecure"}},
		"no authority for clients": {
			args:     []string{"--tls-cert-file=c", "--tls-private-key-file=k"},
			wantCode: servicemain.ExitUsage, want: []string{"--client-ca-file", "--insecure"},
		},
		"a list of callers whom nobody authenticates": {
			args:     []string{"--insecure", "--authorized-callers-file=x"},
			wantCode: servicemain.ExitUsage, want: []string{"--authorized-callers-file", "--client-ca-file"},
		},
		"too little memory": {
			args:     []string{"--insecure", "--memory-limit=100Mi"},
			wantCode: servicemain.ExitUsage, want: []string{"--memory-limit", "256Mi"},
		},
		"an unknown flag": {args: []string{"--tls-cert=x"}, wantCode: servicemain.ExitUsage, want: []string{"--tls-cert"}},
		"a value of no sense": {
			args:     []string{"--insecure", "--max-connection-age=old"},
			wantCode: servicemain.ExitUsage, want: []string{"--max-connection-age"},
		},
		"several values that are out of range": {
			args:     []string{"--insecure", "--max-concurrent-calls=0", "--max-connections=0", "--shutdown-timeout=-1s", "--log-level=loud"},
			wantCode: servicemain.ExitUsage,
			want:     []string{"--max-concurrent-calls", "--max-connections must", "--shutdown-timeout", "--log-level"},
		},
		"a certificate that is not there": {
			args:     []string{"--tls-cert-file", missing, "--tls-private-key-file", missing, "--client-ca-file", missing},
			wantCode: servicemain.ExitFailed, want: []string{"--tls-cert-file", missing},
		},
		"an address that cannot be listened on": {
			args:     []string{"--insecure", "--http-address=", "--grpc-address=256.0.0.1:1"},
			wantCode: servicemain.ExitFailed, want: []string{"--grpc-address"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { testenv.CommandLine(t, newProgram().Start, tc.args, tc.wantCode, tc.want) })
	}
}

// newRemote asks the engine at address.
func newRemote(t *testing.T, address string, files tlsfiles.Client) *decider.Remote {
	t.Helper()
	creds, err := files.Credentials((&testenv.Log{}).Logger())
	if err != nil {
		t.Fatal(err)
	}
	r, err := decider.NewRemote(decider.RemoteConfig{
		Target: address, Credentials: creds, TracerProvider: noop.NewTracerProvider(), Timeout: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestEngineServesOverMutualTLSAndDrains(t *testing.T) {
	authority := testenv.NewAuthority(t, "authority")
	server, client := authority.Issue(t, "engine"), authority.Issue(t, "executor")
	callers := filepath.Join(t.TempDir(), "callers.yaml")
	testenv.WriteFile(t, callers, "callers: [{identity: 'cn:executor', methods: ['*']}]")
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			p := testenv.Start(t, nil, "--grpc-address=127.0.0.1:0", "--http-address=127.0.0.1:0",
				"--tls-cert-file", server.CertFile, "--tls-private-key-file", server.KeyFile, "--client-ca-file", authority.File,
				"--authorized-callers-file", callers, "--shutdown-delay-duration=4s")
			grpcAddress, httpAddress := p.Logged(t, "engine serving", "grpc"), p.Logged(t, "engine serving", "http")
			testenv.Readyz(t, httpAddress, http.StatusOK, "[+] authorized-callers: ok, 1 listed")

			remote := newRemote(t, grpcAddress, tlsfiles.Client{CAFile: authority.File, CertFile: client.CertFile, KeyFile: client.KeyFile})
			if _, err := remote.DecideJob(t.Context(), testenv.FailedSnapshot()); err != nil {
				t.Fatal(err)
			}
			// A call counts as handled a moment after its answer is sent.
			testenv.Eventually(t, func() error {
				_, metrics, err := testenv.Get("http://" + httpAddress + "/metrics")
				if err != nil {
					return err
				}
				for _, want := range []string{
					`jobpolicy_engine_decisions_total{disposition="apply",rule="backoffLimitExceeded"} 1`,
					`grpc_server_handled_total{grpc_code="OK",grpc_method="DecideJob",grpc_service="jobpolicy.v1.PolicyService"} 1`,
					"jobpolicy_engine_authorized_callers_usable 1", "jobpolicy_build_info{", "go_goroutines ", "process_cpu_seconds_total ",
				} {
					if !strings.Contains(metrics, want) {
						return fmt.Errorf("/metrics lacks %q", want)
					}
				}
				return nil
			})

			p.Signal(t, sig)
			testenv.Readyz(t, httpAddress, http.StatusServiceUnavailable, "draining")
			if code := p.ExitCode(t); code != 0 {
				t.Errorf("exit code = %d, want 0", code)
			}
		})
	}
}

func TestStrangersAreNotAnswered(t *testing.T) {
	authority := testenv.NewAuthority(t, "authority")
	server := authority.Issue(t, "engine")
	p := testenv.Start(t, nil, "--grpc-address=127.0.0.1:0", "--http-address=",
		"--tls-cert-file", server.CertFile, "--tls-private-key-file", server.KeyFile, "--client-ca-file", authority.File)
	address := p.Logged(t, "engine serving", "grpc")
	for name, files := range map[string]tlsfiles.Client{
		"without a certificate": {CAFile: authority.File},
		"in plaintext":          {Insecure: true},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := newRemote(t, address, files).DecideJob(ctx, testenv.Snapshot())
		cancel()
		if code := status.Code(err); code != codes.Unavailable && code != codes.DeadlineExceeded {
			t.Errorf("a caller %s: %v, want no connection", name, err)
		}
	}
	p.Logged(t, "TLS handshake refused", "error")
}
