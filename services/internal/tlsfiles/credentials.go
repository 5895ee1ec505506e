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

// following is TLS whose configuration is asked for again at each handshake.
type following struct {
	config     func() (*tls.Config, error)
	serverName string
	refused    *slog.Logger // has a line for few of the clients that are refused
}

// ClientHandshake implements credentials.TransportCredentials.
func (f *following) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	cfg, err := f.current()
	if err != nil {
		return nil, nil, err
	}
	return credentials.NewTLS(cfg).ClientHandshake(ctx, authority, conn)
}

// ServerHandshake implements credentials.TransportCredentials. Refused clients
// are logged, some of many: they themselves often see no more than a closed connection.
func (f *following) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	cfg, err := f.current()
	if err != nil {
		return nil, nil, err
	}
	secured, info, err := credentials.NewTLS(cfg).ServerHandshake(conn)
	// A probe that only opens the port is no news.
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
