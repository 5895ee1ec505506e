package policyserver

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/refusal"
)

// How long a call waits for its turn. A server that cannot keep up says so
// instead of letting a queue grow. Large requests wait longer: each keeps the
// next one waiting for longer.
const (
	turnPatience  = time.Second
	largePatience = 5 * time.Second
)

// largeRequest is the decoded size from which on a request is large: few of them
// are decoded at a time, and none before there is memory for it. Smaller ones need
// none of their own, because there are only so many turns.
const largeRequest = 256 << 10

// A guard stands between the transport and the service: it receives and decodes a
// call's message when there is room for it, encodes the answer, and turns panics
// into INTERNAL.
type guard struct {
	// build is the headers that say which engine answers.
	build   metadata.MD
	log     *slog.Logger
	metrics *callMetrics
	// sendTimeout is the time that an answer has to be written to the connection.
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

// handler answers one call. Everything that the call holds it gives back at the
// end, but for its answer, which the transport gives back. Every error that leaves it
// has a reason.
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
		if err := grpc.SetHeader(ctx, g.build); err != nil {
			return nil, err
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
		answer := &encoded{conn: c.conn, timeout: g.sendTimeout}
		if one := batches[m.name]; one != nil {
			err = srv.(*service).answerBatch(ctx, c, one, request.body, answer)
		} else {
			err = g.one(srv, ctx, c, request.body, next, answer)
		}
		if err != nil {
			answer.free()
			return nil, err
		}
		return answer, nil
	}
}

// one answers a request that is decided on as a whole.
func (g *guard) one(srv any, ctx context.Context, c *call, body []byte, next grpc.MethodHandler, answer *encoded) error {
	var done func()
	decode := func(v any) (err error) {
		done, err = c.decode(ctx, body, v.(proto.Message))
		return err
	}
	defer func() {
		if done != nil {
			done()
		}
	}()
	resp, err := next(srv, ctx, decode, nil)
	if err != nil {
		return err
	}
	return answer.add(nil, resp.(proto.Message))
}

// decode fills in the request when it is its turn and there is memory for it. The
// function that it returns is to be called when the decision is made.
func (c *call) decode(ctx context.Context, body []byte, m proto.Message) (done func(), err error) {
	descriptor := m.ProtoReflect().Descriptor()
	size := measureMessage(body, descriptor)
	if size.overlong != "" {
		return nil, refusal.InvalidArgument(engine.FieldViolation{
			Field: size.overlong, Description: fmt.Sprintf("has more than %d entries, which no list may have", maxEntries),
		})
	}
	done, err = c.turn(ctx, size.bytes)
	if err != nil {
		return nil, err
	}
	if err := decodeMessage(body, m, descriptor); err != nil {
		done()
		return nil, err
	}
	return done, nil
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

// turn waits for a processor, and for memory if the request is large.
func (c *call) turn(ctx context.Context, bytes int64) (done func(), err error) {
	caller := c.conn.caller
	if bytes > caller.decoded.pool.most {
		return nil, refusal.TooLarge(jobpolicyv1.ErrorReason_ERROR_REASON_REQUEST_TOO_LARGE, "decoded, the request takes", bytes, caller.decoded.pool.most)
	}
	var took []func()
	done = func() {
		for _, release := range took {
			release()
		}
	}
	take := func(s *share, n int64, patience time.Duration, kind string) error {
		if err := s.acquireWithin(ctx, patience, n); err != nil {
			done()
			if ctx.Err() != nil {
				return refusal.FromContext(ctx.Err())
			}
			return caller.noRoom(err, kind)
		}
		took = append(took, func() { s.release(n) })
		return nil
	}
	if bytes > largeRequest {
		if err := take(caller.large, 1, largePatience, "processors for large requests"); err != nil {
			return nil, err
		}
		if err := take(caller.decoded, bytes, largePatience, "memory for decoded requests"); err != nil {
			return nil, err
		}
	}
	if err := take(caller.turns, 1, turnPatience, "processors"); err != nil {
		return nil, err
	}
	return done, nil
}

// unary guards calls of other services than the policy service.
func (g *guard) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (_ any, err error) {
	defer g.recovered(ctx, info.FullMethod, &err)
	if c := callFrom(ctx); c != nil && c.refused != nil {
		return nil, c.refused
	}
	return next(ctx, req)
}

// stream is unary for streams: health watches, reflection, and unknown methods.
func (g *guard) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer g.recovered(ss.Context(), info.FullMethod, &err)
	if c := callFrom(ss.Context()); c != nil && c.refused != nil {
		return c.refused
	}
	return next(srv, ss)
}

// recovered is to be deferred. It logs a panic and sets err. (The recovery of
// go-grpc-middleware is an interceptor: calls of the policy service have none,
// because they are decoded only when it is their turn.)
func (g *guard) recovered(ctx context.Context, method string, err *error) {
	if p := recover(); p != nil {
		g.log.ErrorContext(ctx, "call panicked", "method", method, "panic", p, "stack", string(debug.Stack()))
		*err = refusal.ErrInternal
	}
}
