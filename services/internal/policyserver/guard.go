package policyserver

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/services/internal/refusal"
)

// turnPatience is how long a call waits for its turn. A server that cannot keep
// up says so instead of letting a queue grow.
const turnPatience = time.Second

// maxBytesInProgress bounds the memory of calls in progress: decoded, a message
// takes several times its bytes on the wire.
const maxBytesInProgress = 4 * MaxMessageBytes

// A guard stands between the transport and the service: it bounds how many calls
// are decoded and decided on at a time, turns undecodable messages into
// INVALID_ARGUMENT, and turns panics into INTERNAL.
type guard struct {
	budget *semaphore.Weighted
	least  int64 // what the smallest call takes from the budget
	log    *slog.Logger
}

func newGuard(maxConcurrentCalls int, log *slog.Logger) *guard {
	return &guard{
		budget: semaphore.NewWeighted(maxBytesInProgress),
		least:  maxBytesInProgress / int64(maxConcurrentCalls),
		log:    log,
	}
}

// wrap returns desc with every unary method guarded.
func (g *guard) wrap(desc *grpc.ServiceDesc) *grpc.ServiceDesc {
	guarded := *desc
	guarded.Methods = make([]grpc.MethodDesc, 0, len(desc.Methods))
	for _, m := range desc.Methods {
		guarded.Methods = append(guarded.Methods, grpc.MethodDesc{
			MethodName: m.MethodName,
			Handler:    g.handler("/"+desc.ServiceName+"/"+m.MethodName, m.Handler),
		})
	}
	return &guarded
}

// handler receives a message before it waits for its turn, so that a slow sender
// does not keep others waiting, and decodes it after.
func (g *guard) handler(method string, next grpc.MethodHandler) grpc.MethodHandler {
	return func(srv any, ctx context.Context, receive func(any) error, interceptor grpc.UnaryServerInterceptor) (_ any, err error) {
		defer g.recovered(ctx, method, &err)
		var raw rawMessage
		if err := receive(&raw); err != nil {
			return nil, err
		}
		defer raw.free()
		weight := max(g.least, int64(len(raw.bytes())))
		if err := g.acquire(ctx, weight); err != nil {
			return nil, err
		}
		defer g.budget.Release(weight)
		return next(srv, ctx, raw.decode, interceptor)
	}
}

func (g *guard) acquire(ctx context.Context, weight int64) error {
	bounded, cancel := context.WithTimeout(ctx, turnPatience)
	defer cancel()
	if g.budget.Acquire(bounded, weight) == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return refusal.FromContext(err)
	}
	return status.Error(codes.ResourceExhausted, "the server is overloaded, ask again later")
}

// unary recovers panics of services that wrap does not cover.
func (g *guard) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (_ any, err error) {
	defer g.recovered(ctx, info.FullMethod, &err)
	return next(ctx, req)
}

// stream is unary for streams: health watches and reflection.
func (g *guard) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer g.recovered(ss.Context(), info.FullMethod, &err)
	return next(srv, ss)
}

// recovered is to be deferred. It logs a panic and sets err.
func (g *guard) recovered(ctx context.Context, method string, err *error) {
	if p := recover(); p != nil {
		g.log.ErrorContext(ctx, "call panicked", "method", method, "panic", p, "stack", string(debug.Stack()))
		*err = refusal.ErrInternal
	}
}

// decode is what generated code calls to fill in the request. When that fails,
// the field of the violation is empty: the message as a whole is wrong.
func (m *rawMessage) decode(v any) error {
	message := v.(proto.Message)
	descriptor := message.ProtoReflect().Descriptor()
	if field := overlongList(m.bytes(), descriptor); field != "" {
		return refusal.InvalidArgument(engine.FieldViolation{
			Field:       field,
			Description: fmt.Sprintf("has more than %d entries, which no list may have", maxEntries),
		})
	}
	if err := proto.Unmarshal(m.bytes(), message); err != nil {
		return refusal.InvalidArgument(engine.FieldViolation{
			Description: fmt.Sprintf("the bytes are not a valid %s message", descriptor.FullName()),
		})
	}
	return nil
}
