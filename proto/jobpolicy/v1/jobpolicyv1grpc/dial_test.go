package jobpolicyv1grpc

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// test/documents/examples/processes dials a real engine.
func TestDialNamesTheFileThatIsWrong(t *testing.T) {
	dir := t.TempDir()
	dialFails(t, dir, "ca.crt: no such file")
	writeCertificates(t, dir)
	ca := filepath.Join(dir, "ca.crt")
	good, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	begin, rest, _ := strings.Cut(string(good), "\n")
	for text, want := range map[string]string{
		"text":                              "ca.crt: has no certificate",
		string(good) + begin + "\n!" + rest: "ca.crt: only 1 of 2 certificates can be read",
		string(good) + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("text")})): "ca.crt: certificate 2: ",
	} {
		if err := os.WriteFile(ca, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		dialFails(t, dir, want)
	}
}

func dialFails(t *testing.T, dir, want string) {
	t.Helper()
	if _, err := Dial("dns:///localhost:1", dir); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got the error %v, want one with %q", err, want)
	}
}

// writeCertificates writes ca.crt, tls.crt and tls.key to a folder, signed by a new authority.
func writeCertificates(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"ca.crt":  {Type: "CERTIFICATE", Bytes: cert},
		"tls.crt": {Type: "CERTIFICATE", Bytes: cert},
		"tls.key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// answering is an engine that only says what it is.
type answering struct {
	UnimplementedPolicyServiceServer
}

func (answering) GetServerInfo(context.Context, *jobpolicyv1.GetServerInfoRequest) (*jobpolicyv1.GetServerInfoResponse, error) {
	return &jobpolicyv1.GetServerInfoResponse{}, nil
}

// serve starts an engine with the certificates of a folder, which trusts their authority only.
func serve(t *testing.T, address, certificates string) (*grpc.Server, string) {
	t.Helper()
	cfg, err := tlsConfig(certificates)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: cfg.Certificates, ClientCAs: cfg.RootCAs, ClientAuth: tls.RequireAndVerifyClientCert,
	})))
	RegisterPolicyServiceServer(server, answering{})
	go func() { _ = server.Serve(listener) }() // It ends when the server is stopped.
	t.Cleanup(server.Stop)
	return server, listener.Addr().String()
}

// The authority is replaced, and with it every certificate, while a caller is connected.
func TestDialFollowsTheCertificates(t *testing.T) {
	dir := t.TempDir()
	writeCertificates(t, dir)
	engine, address := serve(t, "127.0.0.1:0", dir)
	_, port, _ := net.SplitHostPort(address)
	conn, err := Dial("dns:///localhost:"+port, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ask := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err := NewPolicyServiceClient(conn).GetServerInfo(ctx, &jobpolicyv1.GetServerInfoRequest{})
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	writeCertificates(t, dir)
	engine.Stop()
	serve(t, address, dir)
	if err := ask(); err != nil {
		t.Errorf("after all certificates were replaced: %v", err)
	}
}

// A connection that cannot be made is tried again every two seconds at least. In the time of this test, gRPC's own defaults
// make five tries at most.
func TestDialReconnectsSoon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeCertificates(t, dir)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	conn, err := Dial("passthrough:///"+listener.Addr().String(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	tries := make(chan struct{}, 100)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_ = connection.Close()
			tries <- struct{}{}
		}
	}()
	for end := time.Now().Add(8 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		conn.Connect()
	}
	if len(tries) < 7 {
		t.Errorf("%d tries in 8 s", len(tries))
	}
}
