package judge

import (
	"context"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/services/internal/refusal"
)

// Answer puts a question to the engine that is no decision. It is counted and
// traced as the call that it came with; errors are those of DecideJob.
func Answer[Req, Resp proto.Message](ctx context.Context, j *Judge, question func(Req) (Resp, error), req Req) (none Resp, _ error) {
	if err := refusal.FromContextOf(ctx); err != nil {
		return none, err
	}
	h := hearing[Req, Resp]{kind: "question", name: string(req.ProtoReflect().Descriptor().Name()), ask: question}
	resp, err := ask(ctx, j, h, req)
	if err != nil {
		err = refusal.FromEngine(err)
		j.metrics.refused(err)
		j.log.DebugContext(ctx, "request refused", h.kind, h.name, "error", err)
		return none, err
	}
	return resp, nil
}
