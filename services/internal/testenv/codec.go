package testenv

import "google.golang.org/grpc/mem"

// BytesCodec sends and receives bytes without encoding them.
type BytesCodec struct{}

// Name implements encoding.CodecV2.
func (BytesCodec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (BytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

// Unmarshal implements encoding.CodecV2.
func (BytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
