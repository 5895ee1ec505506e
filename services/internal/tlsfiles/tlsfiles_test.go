package tlsfiles_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"jobpolicy.dev/services/internal/testenv"
	"jobpolicy.dev/services/internal/tlsfiles"
)

// callTimeout ends calls that hang; it is no expectation.
const callTimeout = 20 * time.Second

func serve(t *testing.T, creds credentials.TransportCredentials) string {
	t.Helper()
	lis := testenv.Listen(t)
	server := grpc.NewServer(grpc.Creds(creds))
	healthv1.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(lis) }()
	t.Cleanup(server.Stop)
	return lis.Addr().String()
}

// call makes one call over a connection of its own.
func call(t *testing.T, address string, creds credentials.TransportCredentials) error {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	_, err = healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{})
	return err
}

func serverCredentials(t *testing.T, s tlsfiles.Server, log *testenv.Log) credentials.TransportCredentials {
	t.Helper()
	creds, err := s.Credentials(log.Logger())
	if err != nil {
		t.Fatal(err)
	}
	return creds
}

func clientCredentials(t *testing.T, c tlsfiles.Client) credentials.TransportCredentials {
	t.Helper()
	creds, err := c.Credentials((&testenv.Log{}).Logger())
	if err != nil {
		t.Fatal(err)
	}
	return creds
}

func TestHandshakes(t *testing.T) {
	// Theirs has our name: a client does not even show a certificate of an
	// authority that the server does not name.
	ours, theirs := testenv.NewAuthority(t, "ours"), testenv.NewAuthority(t, "ours")
	serverPair, ourClient, theirClient := ours.Issue(t, "engine"), ours.Issue(t, "executor"), theirs.Issue(t, "stranger")
	tlsOnly := tlsfiles.Server{CertFile: serverPair.CertFile, KeyFile: serverPair.KeyFile}
	mutual := tlsOnly
	mutual.ClientCAFile = ours.File

	cases := map[string]struct {
		server  tlsfiles.Server
		client  tlsfiles.Client
		wantErr string // in the client's error
		// In the server's log: a client that is refused after its own side of a
		// TLS 1.3 handshake may see no more than a closed connection.
		wantLog string
	}{
		"mutual TLS admits a client whose certificate our authority signed": {
			server: mutual,
			client: tlsfiles.Client{CAFile: ours.File, CertFile: ourClient.CertFile, KeyFile: ourClient.KeyFile},
		},
		"mutual TLS refuses a client without a certificate": {
			server:  mutual,
			client:  tlsfiles.Client{CAFile: ours.File},
			wantLog: "client didn't provide a certificate",
		},
		"mutual TLS refuses a client whose certificate another authority signed": {
			server:  mutual,
			client:  tlsfiles.Client{CAFile: ours.File, CertFile: theirClient.CertFile, KeyFile: theirClient.KeyFile},
			wantLog: "unknown authority",
		},
		"mutual TLS refuses plaintext": {
			server:  mutual,
			client:  tlsfiles.Client{Insecure: true},
			wantErr: "error reading server preface",
		},
		"server-side TLS admits a client without a certificate": {
			server: tlsOnly,
			client: tlsfiles.Client{CAFile: ours.File},
		},
		"a client refuses a server whose certificate another authority signed": {
			server:  tlsOnly,
			client:  tlsfiles.Client{CAFile: theirs.File},
			wantErr: "unknown authority",
		},
		"a client refuses a server with another name": {
			server:  tlsOnly,
			client:  tlsfiles.Client{CAFile: ours.File, ServerName: "somebody-else"},
			wantErr: "somebody-else",
		},
		"a client admits a server by the name that it is told": {
			server: tlsOnly,
			client: tlsfiles.Client{CAFile: ours.File, ServerName: "engine"},
		},
		"plaintext when both ask for it": {
			server: tlsfiles.Server{Insecure: true},
			client: tlsfiles.Client{Insecure: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var log testenv.Log
			address := serve(t, serverCredentials(t, tc.server, &log))
			err := call(t, address, clientCredentials(t, tc.client))
			assertRefused(t, err, &log, tc.wantErr, tc.wantLog)
		})
	}
}

// assertRefused wants the call to fail with the text in its error or in the server's log;
// without either, it must succeed.
func assertRefused(t *testing.T, err error, log *testenv.Log, wantErr, wantLog string) {
	t.Helper()
	if refused := wantErr != "" || wantLog != ""; refused != (err != nil) {
		t.Fatalf("call: %v, want refused: %v", err, refused)
	}
	if err != nil && !strings.Contains(err.Error(), wantErr) {
		t.Errorf("call: %v, want an error that says %q", err, wantErr)
	}
	testenv.Eventually(t, func() error { return logged(log, wantLog) })
}

func TestRefusedClientsAreLogged(t *testing.T) {
	ours := testenv.NewAuthority(t, "ours")
	pair := ours.Issue(t, "engine")
	var log testenv.Log
	address := serve(t, serverCredentials(t, tlsfiles.Server{CertFile: pair.CertFile, KeyFile: pair.KeyFile, ClientCAFile: ours.File}, &log))
	for range 5 {
		if err := call(t, address, clientCredentials(t, tlsfiles.Client{CAFile: ours.File})); err == nil {
			t.Fatal("call without a certificate succeeded")
		}
		testenv.Eventually(t, func() error { return logged(&log, "TLS handshake refused") })
	}
	if n := log.Count("TLS handshake refused"); n > 2 {
		t.Errorf("%d lines for 5 clients: whoever can connect can fill the log", n)
	}
}

func TestChangedFilesAreUsedForNewConnections(t *testing.T) {
	first, second := testenv.NewAuthority(t, "first"), testenv.NewAuthority(t, "second")
	serverPair, clientPair := first.Issue(t, "engine"), first.Issue(t, "executor")
	caFile := copyFile(t, first.File)
	server := serverCredentials(t, tlsfiles.Server{CertFile: serverPair.CertFile, KeyFile: serverPair.KeyFile, ClientCAFile: caFile}, &testenv.Log{})
	client := clientCredentials(t, tlsfiles.Client{CAFile: caFile, CertFile: clientPair.CertFile, KeyFile: clientPair.KeyFile})
	address := serve(t, server)
	if err := call(t, address, client); err != nil {
		t.Fatalf("before the change: %v", err)
	}

	// Each step must break or mend both directions, so each file is really read.
	second.IssueTo(t, "engine", serverPair)
	if err := call(t, address, client); err == nil {
		t.Error("the server still shows its old certificate")
	}
	testenv.WriteFile(t, caFile, testenv.ReadFile(t, second.File))
	if err := call(t, address, client); err == nil {
		t.Error("the server still accepts the old authority's clients, or the client still shows its old certificate")
	}
	second.IssueTo(t, "executor", clientPair)
	if err := call(t, address, client); err != nil {
		t.Errorf("after all files were replaced: %v", err)
	}
}

func TestUnusableFilesKeepThePreviousOnesInUse(t *testing.T) {
	ours := testenv.NewAuthority(t, "ours")
	pair := ours.Issue(t, "engine")
	var log testenv.Log
	address := serve(t, serverCredentials(t, tlsfiles.Server{CertFile: pair.CertFile, KeyFile: pair.KeyFile}, &log))
	client := clientCredentials(t, tlsfiles.Client{CAFile: ours.File})
	breakages := []func() error{
		func() error { return os.WriteFile(pair.CertFile, []byte("half a file"), 0o600) },
		func() error { return os.Remove(pair.KeyFile) },
	}
	for i, damage := range breakages {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := call(t, address, client); err != nil {
				t.Errorf("after damage %d: %v, want the previous certificate", i, err)
			}
		}
		if got := log.Count("changed TLS files not usable"); got != i+1 {
			t.Errorf("after damage %d: logged %d times, want once for each damage:\n%s", i, got, log.String())
		}
	}
}

// While an authority is replaced, the file has two. If one of them is damaged, neither is lost.
func TestAHalfUsableListOfAuthoritiesKeepsThePreviousOneInUse(t *testing.T) {
	before, after := testenv.NewAuthority(t, "before"), testenv.NewAuthority(t, "after")
	one, other := string(testenv.ReadFile(t, before.File)), string(testenv.ReadFile(t, after.File))
	for name, text := range map[string]string{
		"the second one ends early":        one + other[:len(other)/2],
		"the first one has a wrong letter": strings.Replace(one, "MII", "M!I", 1) + other,
		"the second one is something else": one + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
	} {
		t.Run(name, func(t *testing.T) {
			server := after.Issue(t, "engine")
			var log testenv.Log
			address := serve(t, serverCredentials(t, tlsfiles.Server{CertFile: server.CertFile, KeyFile: server.KeyFile}, &log))
			authorities := filepath.Join(t.TempDir(), "ca.crt")
			testenv.WriteFile(t, authorities, one+other)
			client := clientCredentials(t, tlsfiles.Client{CAFile: authorities})
			if err := call(t, address, client); err != nil {
				t.Fatal(err)
			}
			testenv.WriteFile(t, authorities, text)
			if err := call(t, address, client); err != nil {
				t.Errorf("%v, want the previous authorities", err)
			}
		})
	}
}

func TestFilesThatCannotBeUsedAreAnErrorAtTheStart(t *testing.T) {
	ours := testenv.NewAuthority(t, "ours")
	one, other := ours.Issue(t, "one"), ours.Issue(t, "other")
	notPEM := copyFile(t, one.CertFile)
	testenv.WriteFile(t, notPEM, "not PEM")
	cases := map[string]struct {
		server tlsfiles.Server
		want   string
	}{
		"a file that is not there": {tlsfiles.Server{CertFile: "missing.pem", KeyFile: one.KeyFile}, "missing.pem"},
		"a key of another certificate": {
			tlsfiles.Server{CertFile: one.CertFile, KeyFile: other.KeyFile}, one.CertFile,
		},
		"authorities that are not PEM": {
			tlsfiles.Server{CertFile: one.CertFile, KeyFile: one.KeyFile, ClientCAFile: notPEM}, notPEM,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := tc.server.Credentials((&testenv.Log{}).Logger())
			testenv.WantError(t, err, tc.want)
		})
	}
}

func TestValidateNamesTheFlags(t *testing.T) {
	cases := map[string]struct {
		options interface{ Validate() error }
		want    string // empty: valid
	}{
		"a server with nothing":            {&tlsfiles.Server{}, "--insecure"},
		"a server with only a certificate": {&tlsfiles.Server{CertFile: "c"}, "--tls-private-key-file"},
		"a server with only a key":         {&tlsfiles.Server{KeyFile: "k"}, "--tls-cert-file"},
		"a server with only an authority":  {&tlsfiles.Server{ClientCAFile: "a"}, "--tls-cert-file"},
		"an insecure server with a file":   {&tlsfiles.Server{Insecure: true, ClientCAFile: "a"}, "--client-ca-file"},
		"an insecure server":               {&tlsfiles.Server{Insecure: true}, ""},
		"a server of anybody":              {&tlsfiles.Server{CertFile: "c", KeyFile: "k"}, "--client-ca-file"},
		"a server of anybody, asked for":   {&tlsfiles.Server{CertFile: "c", KeyFile: "k", Insecure: true}, ""},
		"a server with all files":          {&tlsfiles.Server{CertFile: "c", KeyFile: "k", ClientCAFile: "a"}, ""},
		"a client with nothing":            {&tlsfiles.Client{}, ""},
		"a client with only a certificate": {&tlsfiles.Client{CertFile: "c"}, "--engine-key-file"},
		"a client with only a key":         {&tlsfiles.Client{KeyFile: "k"}, "--engine-cert-file"},
		"an insecure client with a name":   {&tlsfiles.Client{Insecure: true, ServerName: "n"}, "--engine-server-name"},
		"an insecure client":               {&tlsfiles.Client{Insecure: true}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			testenv.WantError(t, tc.options.Validate(), tc.want)
		})
	}
}

func logged(log *testenv.Log, text string) error {
	if !strings.Contains(log.String(), text) {
		return fmt.Errorf("log lacks %q:\n%s", text, log.String())
	}
	return nil
}

func copyFile(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir() + "/copy.pem"
	testenv.WriteFile(t, to, testenv.ReadFile(t, from))
	return to
}
