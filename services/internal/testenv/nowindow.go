package testenv

import (
	"bytes"
	"io"
	"net"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"
)

// AskWithoutWindow begins a connection to a gRPC server on which the server may send no data, and
// makes so many calls of a method, each with the metadata. Their answers stay in the server.
func AskWithoutWindow(conn net.Conn, calls int, metadata map[string]string, method string, request proto.Message) error {
	message, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	size := len(message)
	body := append([]byte{0, byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size)}, message...)
	framer := http2.NewFramer(conn, nil)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return err
	}
	if err := framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		return err
	}
	var header bytes.Buffer
	encoder := hpack.NewEncoder(&header)
	for n := range calls {
		header.Reset()
		fields := []hpack.HeaderField{
			{Name: ":method", Value: "POST"},
			{Name: ":scheme", Value: "http"},
			{Name: ":path", Value: method},
			{Name: ":authority", Value: "engine"},
			{Name: "content-type", Value: "application/grpc"},
			{Name: "te", Value: "trailers"},
		}
		for name, value := range metadata {
			fields = append(fields, hpack.HeaderField{Name: name, Value: value, Sensitive: true}) // so that each call sends it
		}
		for _, field := range fields {
			if err := encoder.WriteField(field); err != nil {
				return err
			}
		}
		id := uint32(2*n + 1)
		if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: header.Bytes(), EndHeaders: true}); err != nil {
			return err
		}
		if err := framer.WriteData(id, true, body); err != nil {
			return err
		}
	}
	return nil
}
