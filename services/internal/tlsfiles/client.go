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

// Client names the files of a client of the engine, or the Secret that has their
// content.
type Client struct {
	// CAFile holds the authorities that may sign the server's certificate. Empty: the
	// authorities of the system.
	CAFile   string
	CertFile string
	KeyFile  string
	// ServerName is the name that the server's certificate must have. Empty: the name in
	// the address.
	ServerName string
	// Secret, if set, is the namespace/name of a Secret with tls.crt, tls.key and
	// ca.crt; no file may be set then.
	Secret string
	// Insecure talks plaintext; nothing else may be set then.
	Insecure bool
}

// AddFlags defines the flags.
func (c *Client) AddFlags(fs *pflag.FlagSet) {
	c.AddFileFlags(fs)
	fs.StringVar(&c.Secret, "engine-tls-secret", "", "`Secret` (namespace/name) with tls.crt, tls.key and ca.crt to use instead of files. It may still be empty. Followed when it changes.")
}

// AddFileFlags defines the flags of a client that reads no Secret.
func (c *Client) AddFileFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.CAFile, "engine-ca-file", "", "PEM `file` with the authorities that may sign the engine's certificate. Default: the system's. Followed when it changes.")
	fs.StringVar(&c.CertFile, "engine-cert-file", "", "PEM `file` with the certificate to show to the engine. Followed when it changes.")
	fs.StringVar(&c.KeyFile, "engine-key-file", "", "PEM `file` with the key of --engine-cert-file. Followed when it changes.")
	fs.StringVar(&c.ServerName, "engine-server-name", "", "`Name` that the engine's certificate must have. Default: the host of --engine.")
	fs.BoolVar(&c.Insecure, "engine-insecure", false, "Talk plaintext to the engine. Only for one's own machine or a mesh that does the encryption.")
}

// IsSet reports whether any flag was given.
func (c *Client) IsSet() bool { return *c != (Client{}) }

// Validate checks that the flags go together. Errors name flags.
func (c *Client) Validate() error {
	switch {
	case c.Insecure && *c != (Client{Insecure: true}):
		return errors.New("--engine-insecure excludes --engine-ca-file, --engine-cert-file, --engine-key-file, --engine-tls-secret and --engine-server-name")
	case c.Secret != "" && (c.CAFile != "" || c.CertFile != "" || c.KeyFile != ""):
		return errors.New("--engine-tls-secret excludes --engine-ca-file, --engine-cert-file and --engine-key-file")
	case c.CertFile != "" && c.KeyFile == "":
		return errors.New("--engine-cert-file needs --engine-key-file")
	case c.CertFile == "" && c.KeyFile != "":
		return errors.New("--engine-key-file needs --engine-cert-file")
	}
	return nil
}

// SecretCredentials takes the certificates from read, which returns the Secret's value of
// a key, and follows changes. Until the Secret has a certificate, connections fail.
func (c *Client) SecretCredentials(read func(key string) ([]byte, error), log *slog.Logger) credentials.TransportCredentials {
	pool := newPool(newSource(read, "ca.crt"), log)
	pair := newKeyPair(newSource(read, "tls.crt", "tls.key"), log)
	return &following{config: clientConfig(pool, pair), serverName: c.ServerName, refused: logging.Bounded(log)}
}

// Credentials reads the files once, so that errors show at the start, and follows changes
// from then on.
func (c *Client) Credentials(log *slog.Logger) (credentials.TransportCredentials, error) {
	if c.Insecure {
		return insecure.NewCredentials(), nil
	}
	config := c.config(log)
	if _, err := config(); err != nil {
		return nil, fmt.Errorf("--engine-ca-file, --engine-cert-file, --engine-key-file: %w", err)
	}
	return &following{config: config, serverName: c.ServerName, refused: logging.Bounded(log)}, nil
}

func (c *Client) config(log *slog.Logger) func() (*tls.Config, error) {
	var pool *reloaded[*x509.CertPool]
	if c.CAFile != "" {
		pool = newPool(files(c.CAFile), log)
	}
	var pair *reloaded[*tls.Certificate]
	if c.CertFile != "" {
		pair = newKeyPair(files(c.CertFile, c.KeyFile), log)
	}
	return clientConfig(pool, pair)
}

// clientConfig returns the configuration by the current pool and pair. Either may be nil.
func clientConfig(pool *reloaded[*x509.CertPool], pair *reloaded[*tls.Certificate]) func() (*tls.Config, error) {
	return func() (*tls.Config, error) {
		cfg := &tls.Config{MinVersion: tls.VersionTLS12}
		var err error
		if pool != nil {
			if cfg.RootCAs, err = pool.current(); err != nil {
				return nil, err
			}
		}
		if pair == nil {
			return cfg, nil
		}
		cert, err := pair.current()
		if err != nil {
			return nil, err
		}
		cfg.Certificates = []tls.Certificate{*cert}
		return cfg, nil
	}
}
