package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"jobpolicy.dev/services/internal/logging"
)

// Server names the files of a server.
type Server struct {
	CertFile string
	KeyFile  string
	// ClientCAFile holds authorities. Every client must show a certificate that one of
	// them has signed.
	ClientCAFile string
	// Insecure serves clients that nobody authenticates: over TLS if there is a
	// certificate, else in plaintext. ClientCAFile may not be set then.
	Insecure bool
}

// AddFlags defines the flags, named as those of kube-controller-manager.
func (s *Server) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&s.CertFile, "tls-cert-file", "", "PEM `file` with the server's certificate and its chain. Followed when it changes.")
	fs.StringVar(&s.KeyFile, "tls-private-key-file", "", "PEM `file` with the key of --tls-cert-file. Followed when it changes.")
	fs.StringVar(&s.ClientCAFile, "client-ca-file", "", "PEM `file` with certificate authorities. Every client must show a certificate signed by one of them. Followed when it changes.")
	fs.BoolVar(&s.Insecure, "insecure", false, "Serve clients that show no certificate: anybody may ask. In plaintext, unless there is --tls-cert-file. Only for one's own machine or a mesh that authenticates.")
}

// Validate refuses to serve clients that nobody authenticates, unless Insecure is set.
// Errors name flags.
func (s *Server) Validate() error {
	hasPair := s.CertFile != "" && s.KeyFile != ""
	switch {
	case s.Insecure && s.ClientCAFile != "":
		return errors.New("--insecure excludes --client-ca-file")
	case s.CertFile == "" && s.KeyFile != "":
		return errors.New("--tls-private-key-file needs --tls-cert-file")
	case s.CertFile != "" && s.KeyFile == "":
		return errors.New("--tls-cert-file needs --tls-private-key-file")
	case s.Insecure:
		return nil
	case !hasPair:
		return errors.New("no certificate to serve with: set --tls-cert-file, --tls-private-key-file and --client-ca-file, or --insecure to serve plaintext to anybody")
	case s.ClientCAFile == "":
		return errors.New("clients would not be authenticated: set --client-ca-file, or --insecure to serve anybody")
	}
	return nil
}

// Credentials reads the files once, so that errors show at the start, and follows changes
// from then on.
func (s *Server) Credentials(log *slog.Logger) (credentials.TransportCredentials, error) {
	if s.Insecure && s.CertFile == "" {
		log.Warn("serving plaintext: anybody who reaches the address may ask, and may read along")
		return insecure.NewCredentials(), nil
	}
	if s.ClientCAFile == "" {
		log.Warn("clients are not authenticated: anybody who reaches the address may ask")
	}
	config := s.config(log)
	if _, err := config(); err != nil {
		return nil, fmt.Errorf("--tls-cert-file, --tls-private-key-file, --client-ca-file: %w", err)
	}
	return &following{config: config, refused: logging.Bounded(log)}, nil
}

func (s *Server) config(log *slog.Logger) func() (*tls.Config, error) {
	pair := newKeyPair(files(s.CertFile, s.KeyFile), log)
	var pool *reloaded[*x509.CertPool]
	if s.ClientCAFile != "" {
		pool = newPool(files(s.ClientCAFile), log)
	}
	return func() (*tls.Config, error) {
		cert, err := pair.current()
		if err != nil {
			return nil, err
		}
		// Without session tickets, every connection is checked against the current files.
		cfg := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*cert}, SessionTicketsDisabled: true}
		if pool == nil {
			return cfg, nil
		}
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
		cfg.ClientCAs, err = pool.current()
		return cfg, err
	}
}
