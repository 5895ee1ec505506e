package policyserver

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/services/internal/refusal"
)

// A guard stands between the transport and the service: it receives and decodes a
// call's message when there is room for it, encodes the answer, and turns panics
// into INTERNAL.
type guard struct {
	// build is the headers that say which engine answers.
	build   metadata.MD
	log     *slog.Logger
	metrics *callMetrics
	// sendTimeout is how long it may take to write an answer to the connection.
	sendTimeout time.Duration
}

// wrap returns desc with every unary method guarded.
func (g *guard) wrap(desc *grpc.ServiceDesc) *grpc.ServiceDesc {
	guarded := *desc
	guarded.Methods = make([]grpc.MethodDesc, 0, len(desc.Methods))
	for _, m := range desc.Methods {
		guarded.Methods = append(guarded.Methods, grpc.MethodDesc{
			MethodName: m.MethodName,
			Handler:    g.handler(method{service: desc.ServiceName, name: m.MethodName}, m.Handler),
		})
	}
	return &guarded
}

// handler returns a handler of one method. It releases everything that a call holds,
// except the answer, which the transport releases. Every error that it returns has a
// reason.
func (g *guard) handler(m method, next grpc.MethodHandler) grpc.MethodHandler {
	return func(srv any, ctx context.Context, _ func(any) error, _ grpc.UnaryServerInterceptor) (_ any, err error) {
		defer func() { err = refusal.WithReason(err) }()
		defer g.recovered(ctx, m.full(), &err)
		c := callFrom(ctx)
		if c == nil {
			return nil, refusal.ErrInternal
		}
		if c.refused != nil {
			return nil, c.refused
		}
		if !c.conn.callers.begin(c.conn.caller) {
			return nil, refusal.FromContext(context.Canceled)
		}
		defer c.conn.callers.end(c.conn.caller)
		if err := uncompressed(ctx); err != nil {
			return nil, err
		}
		if grpc.SetHeader(ctx, g.build) != nil { // The caller has ended the call already.
			return nil, refusal.FromContext(cmp.Or(ctx.Err(), context.Canceled))
		}
		if err := c.conn.caller.readsAnswers(); err != nil {
			return nil, err
		}
		request, err := receive(ctx, c)
		if err != nil {
			return nil, err
		}
		defer request.free()
		g.metrics.received(m, len(request.body))
		answer := &encoded{call: c, timeout: g.sendTimeout}
		sent := false
		defer func() {
			if !sent {
				answer.free()
			}
		}()
		if err := g.one(srv, ctx, c, request.body, next, answer); err != nil {
			return nil, err
		}
		sent = true
		return answer, nil
	}
}

// uncompressed makes the answer one that is not compressed. The transport would compress it as
// the request says it is, and would report the answer as written before it has written anything.
func uncompressed(ctx context.Context) error {
	if err := grpc.SetSendCompressor(ctx, encoding.Identity); err != nil {
		return refusal.FromContext(cmp.Or(ctx.Err(), context.Canceled)) // The headers are sent, or the call has ended.
	}
	return nil
}

// refusing returns desc with unary methods that refuse a call before its message arrives. An
// interceptor could not do that: gRPC calls it only after the message has arrived.
func refusing(desc *grpc.ServiceDesc) *grpc.ServiceDesc {
	quick := *desc
	quick.Methods = slices.Clone(desc.Methods)
	for i, m := range quick.Methods {
		quick.Methods[i].Handler = func(srv any, ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			if c := callFrom(ctx); c != nil && c.refused != nil {
				return nil, c.refused
			}
			return m.Handler(srv, ctx, dec, interceptor)
		}
	}
	return &quick
}

// one answers a request.
func (g *guard) one(srv any, ctx context.Context, c *call, body []byte, next grpc.MethodHandler, answer *encoded) error {
	t := &turn{call: c}
	defer t.end()
	decode := func(v any) error { return t.decode(ctx, body, v.(proto.Message)) }
	resp, err := next(srv, ctx, decode, nil)
	if err != nil {
		return err
	}
	return answer.encode(resp.(proto.Message))
}

func decodeMessage(body []byte, m proto.Message, descriptor protoreflect.MessageDescriptor) error {
	if err := proto.Unmarshal(body, m); err != nil {
		// The field is empty: the message as a whole is wrong.
		return refusal.InvalidArgument(engine.FieldViolation{
			Description: fmt.Sprintf("the bytes are not a valid %s message", descriptor.FullName()),
		})
	}
	return nil
}

// unary guards calls of other services than the policy service.
func (g *guard) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (_ any, err error) {
	defer g.recovered(ctx, info.FullMethod, &err)
	c := callFrom(ctx)
	switch {
	case c == nil:
		return next(ctx, req)
	case c.refused != nil:
		return nil, c.refused
	}
	c.arrived()
	if err := uncompressed(ctx); err != nil {
		return nil, err
	}
	resp, err := next(ctx, req)
	if err != nil {
		return nil, err
	}
	return g.encode(c, resp)
}

// encode encodes a message of another service than the policy service. It counts as an
// answer, which must be read in time.
func (g *guard) encode(c *call, m any) (*encoded, error) {
	answer := &encoded{call: c, timeout: g.sendTimeout}
	sent := false
	defer func() {
		if !sent {
			answer.free()
		}
	}()
	if err := answer.encode(m.(proto.Message)); err != nil {
		return nil, err
	}
	sent = true
	return answer, nil
}

// stream is unary for streams: health watches, reflection, and unknown methods.
func (g *guard) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer g.recovered(ss.Context(), info.FullMethod, &err)
	if c := callFrom(ss.Context()); c != nil && c.refused != nil {
		return c.refused
	} else if c != nil {
		if err := uncompressed(ss.Context()); err != nil {
			return err
		}
		ss = &arriving{ServerStream: ss, guard: g, call: c}
	}
	return next(srv, ss)
}

// An arriving stream notes when its first message has been received, and counts its answers.
type arriving struct {
	grpc.ServerStream
	guard *guard
	call  *call
}

// RecvMsg implements grpc.ServerStream.
func (a *arriving) RecvMsg(m any) error {
	err := a.ServerStream.RecvMsg(m)
	a.call.arrived()
	return err
}

// SendMsg implements grpc.ServerStream.
func (a *arriving) SendMsg(m any) error {
	answer, err := a.guard.encode(a.call, m)
	if err != nil {
		return err
	}
	return a.ServerStream.SendMsg(answer)
}

// recovered must be deferred. It logs a panic and sets err. (The recovery of
// go-grpc-middleware is an interceptor. Calls of the policy service pass through none,
// because they are decoded only when it is their turn.)
func (g *guard) recovered(ctx context.Context, method string, err *error) {
	if p := recover(); p != nil {
		g.log.ErrorContext(ctx, "call panicked", "method", method, "panic", p, "stack", string(debug.Stack()))
		*err = refusal.ErrInternal
	}
}
