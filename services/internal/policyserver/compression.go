package policyserver

import (
	"compress/zlib"
	"io"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip"
)

// The server refuses compressed messages, and says why (messageSize). gRPC itself refuses
// calls whose encoding is not registered, without a reason. So the two encodings that
// clients in C, Python, Node and .NET have built in are registered: gzip and deflate.
func init() { encoding.RegisterCompressor(deflate{}) }

// deflate is the encoding of that name. Its format is zlib.
type deflate struct{}

// Name implements encoding.Compressor.
func (deflate) Name() string { return "deflate" }

// Compress implements encoding.Compressor.
func (deflate) Compress(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriter(w), nil }

// Decompress implements encoding.Compressor.
func (deflate) Decompress(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }
