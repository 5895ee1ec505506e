package decider

import (
	"context"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/services/internal/refusal"
)

// Answer calls one of the engine's functions that is not a decision. Errors are those of
// DecideJob. It starts no span, because the span of the RPC says the same.
func Answer[Req, Resp proto.Message](ctx context.Context, e *Embedded, f func(Req) (Resp, error), req Req) (none Resp, _ error) {
	if err := refusal.FromContextOf(ctx); err != nil {
		return none, err
	}
	c := call[Req, Resp]{kind: "question", name: string(req.ProtoReflect().Descriptor().Name()), f: f}
	return c.run(ctx, e, req)
}
