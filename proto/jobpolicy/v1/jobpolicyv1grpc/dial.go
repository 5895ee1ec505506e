package jobpolicyv1grpc

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/health" // Makes the client use healthCheckConfig.
)

// MaxMessageBytes is the contract's limit on a message.
const MaxMessageBytes = 16 << 20

// ServiceConfig spreads the calls over the engines that are healthy, and repeats a
// call that did not reach an engine.
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

// Dial returns a connection to the engines at a gRPC target, such as
// dns:///localhost:8443, over mutual TLS. certificates is a folder with ca.crt,
// tls.crt and tls.key, the names that Kubernetes gives them in a mounted Secret. The
// caller's own certificate is read anew for each connection, so that a renewed one is
// used.
func Dial(target, certificates string) (*grpc.ClientConn, error) {
	authority, err := os.ReadFile(filepath.Join(certificates, "ca.crt"))
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s has no certificate", filepath.Join(certificates, "ca.crt"))
	}
	own := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(filepath.Join(certificates, "tls.crt"), filepath.Join(certificates, "tls.key"))
		return &pair, err
	}
	if _, err := own(); err != nil {
		return nil, err
	}
	return grpc.NewClient(target,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
			RootCAs:              trusted,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own() },
		})),
		grpc.WithDefaultServiceConfig(ServiceConfig),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessageBytes), grpc.MaxCallSendMsgSize(MaxMessageBytes), grpc.WaitForReady(true)))
}
