package policyserver

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	protobuf "google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// codec is the protobuf codec, which can also hand over a message undecoded. The
// transport answers a message that it cannot decode with INTERNAL, as if it were
// the server's fault; and it decodes before anybody can say no.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(proto.Name)} }

// Marshal implements encoding.CodecV2. Equal decisions have equal bytes: the
// entries of their maps are in order.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	switch v.(type) {
	case *jobpolicyv1.DecideCronJobResponse, *jobpolicyv1.DecideCronJobsResponse: // have maps
	default:
		return c.CodecV2.Marshal(v)
	}
	b, err := protobuf.MarshalOptions{Deterministic: true}.Marshal(v.(protobuf.Message))
	return mem.BufferSlice{mem.SliceBuffer(b)}, err
}

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
