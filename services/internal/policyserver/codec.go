package policyserver

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// codec is the protobuf codec, which also takes answers that are encoded already.
// It does not decode requests of the policy service: a guard does that when it is their
// turn.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(proto.Name)} }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if answer, ok := v.(*encoded); ok {
		return answer.send(), nil
	}
	return c.CodecV2.Marshal(v)
}
