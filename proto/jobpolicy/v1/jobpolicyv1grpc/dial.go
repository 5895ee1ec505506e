package jobpolicyv1grpc

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/health" // Makes the client use healthCheckConfig.
	"google.golang.org/grpc/keepalive"
)

// MaxMessageBytes is the contract's limit on a message, either way.
const MaxMessageBytes = 16 << 20

// ServiceConfig spreads the calls over the addresses of the target, except those that
// report that they are draining. It repeats a call whose connection broke; that is safe,
// because no call has side effects.
const ServiceConfig = `{
  "loadBalancingConfig": [{"round_robin": {}}],
  "healthCheckConfig": {"serviceName": "jobpolicy.v1.PolicyService"},
  "methodConfig": [{
    "name": [{"service": "jobpolicy.v1.PolicyService"}],
    "retryPolicy": {
      "maxAttempts": 3, "initialBackoff": "0.05s", "maxBackoff": "0.5s", "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE"]
    }
  }]
}`

// WithReconnects tries to connect again every two seconds at least. Dial uses it. By gRPC's
// own defaults the next try may come up to two minutes after an engine is back.
func WithReconnects() grpc.DialOption {
	return grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
		MinConnectTimeout: 3 * time.Second,
	})
}

// WithPings finds out within 25 seconds that an engine is gone whose machine has not ended the
// connection, because it was lost or cut off. Dial uses it.
func WithPings() grpc.DialOption {
	return grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 5 * time.Second, PermitWithoutStream: true})
}

// Dial returns a connection to the engines at a gRPC target, such as
// dns:///localhost:8443, over mutual TLS. certificates is a folder with ca.crt,
// tls.crt and tls.key, the names that Kubernetes gives them in a mounted Secret. They are
// read anew for each connection, so that renewed ones are used. Errors name the file.
// options are added, for example those that trace or bound calls.
func Dial(target, certificates string, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	if _, err := tlsConfig(certificates); err != nil {
		return nil, err
	}
	return grpc.NewClient(target, append([]grpc.DialOption{
		grpc.WithTransportCredentials(folder{credentials.NewTLS(nil), certificates}),
		grpc.WithDefaultServiceConfig(ServiceConfig),
		WithLookups(),
		WithReconnects(),
		WithPings(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessageBytes), grpc.MaxCallSendMsgSize(MaxMessageBytes), grpc.WaitForReady(true)),
	}, options...)...)
}

// folder is TLS that reads its certificates at each handshake from a folder.
type folder struct {
	credentials.TransportCredentials
	path string
}

// ClientHandshake implements credentials.TransportCredentials.
func (f folder) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	cfg, err := tlsConfig(f.path)
	if err != nil {
		return nil, nil, err
	}
	return credentials.NewTLS(cfg).ClientHandshake(ctx, authority, conn)
}

// Clone implements credentials.TransportCredentials.
func (f folder) Clone() credentials.TransportCredentials {
	return folder{f.TransportCredentials.Clone(), f.path}
}

func tlsConfig(certificates string) (*tls.Config, error) {
	authorities := filepath.Join(certificates, "ca.crt")
	text, err := os.ReadFile(authorities)
	if err != nil {
		return nil, err
	}
	trusted, err := pool(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", authorities, err)
	}
	own, err := tls.LoadX509KeyPair(filepath.Join(certificates, "tls.crt"), filepath.Join(certificates, "tls.key"))
	if err != nil {
		return nil, err
	}
	return &tls.Config{RootCAs: trusted, Certificates: []tls.Certificate{own}}, nil
}

// pool fails if there is no certificate, or if one cannot be read. AppendCertsFromPEM would
// skip it, and then its authority would not be trusted.
func pool(text []byte) (*x509.CertPool, error) {
	trusted, read := x509.NewCertPool(), 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", read+1, err)
		}
		trusted.AddCert(certificate)
		read++
	}
	switch n := bytes.Count(text, []byte("-----BEGIN CERTIFICATE-----")); {
	case n == 0:
		return nil, errors.New("has no certificate")
	case n != read:
		return nil, fmt.Errorf("only %d of %d certificates can be read", read, n)
	}
	return trusted, nil
}
