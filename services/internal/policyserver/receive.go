package policyserver

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	jobpolicyv1grpc "jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/refusal"
)

// smallMessage is how much of a message the transport receives before anybody reads it.
// Messages up to this size are not counted against the memory for requests.
const smallMessage = streamWindow

// receiveChunk is how many bytes of a message are read at a time. Until a chunk is complete, the
// transport keeps the client's HTTP/2 frames, and a frame of one byte takes about forty bytes of
// memory. A small chunk bounds that.
const receiveChunk = 4 << 10

// requestMemoryTimeout is how long a large message waits for memory before it is received.
const requestMemoryTimeout = time.Second

// A messageStream is the transport's stream below a call. It gives the size of a message
// before the message is received; grpc.ServerStream gives it only afterwards.
type messageStream interface {
	ReadMessageHeader([]byte) error
	Read(n int) (mem.BufferSlice, error)
}

// A message is a request as it came over the wire.
type message struct {
	body   []byte
	pooled *[]byte
	share  *share // where its bytes are counted; nil if it is small
}

func (m *message) free() {
	if m.pooled != nil {
		mem.DefaultBufferPool().Put(m.pooled)
	}
	if m.share != nil {
		m.share.release(int64(len(m.body)))
	}
	*m = message{}
}

// receive waits for room for the one message of a call, and reads it.
func receive(ctx context.Context, c *call) (*message, error) {
	stream, ok := grpc.ServerTransportStreamFromContext(ctx).(messageStream)
	if !ok {
		return nil, refusal.ErrInternal // only with another version of gRPC, for which every test fails
	}
	size, err := messageSize(ctx, stream)
	if err != nil {
		return nil, err
	}
	m, err := c.roomFor(ctx, size)
	if err != nil {
		return nil, err
	}
	if err := m.fill(ctx, stream); err != nil {
		m.free()
		return nil, err
	}
	c.arrived()
	return m, nil
}

func messageSize(ctx context.Context, stream messageStream) (int, error) {
	var header [5]byte // gRPC's: whether it is compressed, and the length
	if err := stream.ReadMessageHeader(header[:]); err != nil {
		return 0, receiveError(ctx, err)
	}
	if header[0] != 0 {
		return 0, refusal.Refusal{
			Code: codes.Unimplemented, Reason: jobpolicyv1.ErrorReason_ERROR_REASON_COMPRESSED_MESSAGE,
			Text: "the message is compressed: send it as it is",
		}.Err()
	}
	size := int64(binary.BigEndian.Uint32(header[1:]))
	if size > jobpolicyv1grpc.MaxMessageBytes {
		return 0, refusal.TooLarge(jobpolicyv1.ErrorReason_ERROR_REASON_REQUEST_TOO_LARGE, "the request takes", size, jobpolicyv1grpc.MaxMessageBytes)
	}
	return int(size), nil
}

// roomFor returns an empty message with room for size bytes.
func (c *call) roomFor(ctx context.Context, size int) (*message, error) {
	if size <= smallMessage {
		b := mem.DefaultBufferPool().Get(size)
		return &message{body: *b, pooled: b}, nil
	}
	bounded, cancel := context.WithTimeout(ctx, requestMemoryTimeout)
	defer cancel()
	caller := c.conn.caller
	if err := caller.received.acquire(bounded, int64(size)); err != nil {
		if ctx.Err() != nil {
			return nil, receiveError(ctx, ctx.Err())
		}
		return nil, caller.noRoom(err, "memory for requests")
	}
	return &message{body: make([]byte, size), share: caller.received}, nil
}

// fill reads the message, and checks that no other follows.
func (m *message) fill(ctx context.Context, stream messageStream) error {
	for at := 0; at < len(m.body); {
		piece, err := stream.Read(min(receiveChunk, len(m.body)-at))
		if err != nil {
			return receiveError(ctx, err)
		}
		at += piece.CopyTo(m.body[at:])
		piece.Free()
	}
	more, err := stream.Read(1)
	if err == nil {
		more.Free()
		return refusal.InvalidArgument(engine.FieldViolation{Description: "a call has one message, and another one came"})
	}
	if !errors.Is(err, io.EOF) {
		return receiveError(ctx, err)
	}
	return nil
}

// receiveError returns the error of a call whose message could not be read: it was too
// slow, the caller ended it, or its connection failed.
func receiveError(ctx context.Context, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), errTooSlow):
		return refusal.Refusal{
			Code: codes.DeadlineExceeded, Reason: jobpolicyv1.ErrorReason_ERROR_REASON_REQUEST_TOO_SLOW,
			Text: errTooSlow.Error(),
		}.Err()
	case ctx.Err() != nil:
		return refusal.FromContext(ctx.Err())
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return refusal.InvalidArgument(engine.FieldViolation{Description: "the call ended before its message did"})
	default:
		return err // the connection's
	}
}
