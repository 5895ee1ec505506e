package policyserver

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// codec is the protobuf codec, which can also hand over a message undecoded. The
// transport answers a message that it cannot decode with INTERNAL, as if it were
// the server's fault; and it decodes before anybody can say no.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(proto.Name)} }

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	raw, ok := v.(*rawMessage)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	raw.buf = data.MaterializeToBuffer(mem.DefaultBufferPool())
	return nil
}

// rawMessage is a message as it came over the wire.
type rawMessage struct{ buf mem.Buffer }

func (m *rawMessage) bytes() []byte { return m.buf.ReadOnlyData() }

func (m *rawMessage) free() { m.buf.Free() }
