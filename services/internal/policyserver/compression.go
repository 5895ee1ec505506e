package policyserver

import (
	"compress/zlib"
	"io"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip"
)

// Compressed messages are refused (messageSize). A call with an encoding that is not
// registered does not get that far: gRPC refuses it, without a reason. So both encodings
// are registered that clients in C, Python, Node and .NET have built in.
func init() { encoding.RegisterCompressor(deflate{}) }

// deflate is the encoding of this name, which is that of zlib.
type deflate struct{}

// Name implements encoding.Compressor.
func (deflate) Name() string { return "deflate" }

// Compress implements encoding.Compressor.
func (deflate) Compress(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriter(w), nil }

// Decompress implements encoding.Compressor.
func (deflate) Decompress(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }
