package tlsfiles

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"

	"google.golang.org/grpc/credentials"
)

// following is TLS that asks for its configuration at each handshake.
type following struct {
	config     func() (*tls.Config, error)
	serverName string
	refused    *slog.Logger // logs refused clients, but not all if there are many
}

// ClientHandshake implements credentials.TransportCredentials.
func (f *following) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	cfg, err := f.current()
	if err != nil {
		return nil, nil, err
	}
	return credentials.NewTLS(cfg).ClientHandshake(ctx, authority, conn)
}

// ServerHandshake implements credentials.TransportCredentials. It logs refused clients,
// because they often see only a closed connection themselves.
func (f *following) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	cfg, err := f.current()
	if err != nil {
		return nil, nil, err
	}
	secured, info, err := credentials.NewTLS(cfg).ServerHandshake(conn)
	// A probe that only opens the port is not logged.
	if err != nil && !errors.Is(err, io.EOF) {
		f.refused.Warn("TLS handshake refused", "client", conn.RemoteAddr().String(), "error", err)
	}
	return secured, info, err
}

// Info implements credentials.TransportCredentials.
func (f *following) Info() credentials.ProtocolInfo {
	return credentials.NewTLS(&tls.Config{ServerName: f.serverName}).Info()
}

// Clone implements credentials.TransportCredentials.
func (f *following) Clone() credentials.TransportCredentials {
	c := *f
	return &c
}

// OverrideServerName implements credentials.TransportCredentials.
func (f *following) OverrideServerName(name string) error {
	f.serverName = name
	return nil
}

func (f *following) current() (*tls.Config, error) {
	cfg, err := f.config()
	if err != nil {
		return nil, err
	}
	cfg.ServerName = f.serverName
	return cfg, nil
}
