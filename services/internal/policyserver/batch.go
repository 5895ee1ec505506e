package policyserver

import (
	"context"
	"fmt"
	"iter"

	statusv1 "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/unknown"
	"jobpolicy.dev/services/internal/refusal"
)

// Field numbers that are the same in all batch methods: the items of a request, the
// results of an answer, and the answer or the error of a result.
const (
	batchField   = protowire.Number(1) // requests
	resultsField = protowire.Number(1) // results
	answerField  = protowire.Number(1) // decision, or response
	errorField   = protowire.Number(2) // error
)

// A batch answers one encoded item. If it returns an error, the whole batch fails: there
// was no room, or the caller is gone.
type batch func(ctx context.Context, s *service, t *turn, item []byte) (result proto.Message, err error)

// batches are the methods that are answered item by item: each item is decoded, answered
// and encoded before the next one is decoded.
var batches = map[string]batch{
	"DecideJobs":              itemwise(&jobpolicyv1.DecideJobsResult{}, (*service).DecideJob),
	"DecideCronJobs":          itemwise(&jobpolicyv1.DecideCronJobsResult{}, (*service).DecideCronJob),
	"CheckJobStatuses":        itemwise(&jobpolicyv1.CheckJobStatusesResult{}, (*service).CheckJobStatus),
	"BatchMatchSuccessPolicy": itemwise(&jobpolicyv1.BatchMatchSuccessPolicyResult{}, (*service).MatchSuccessPolicy),
	"BatchChoosePodsToDelete": itemwise(&jobpolicyv1.BatchChoosePodsToDeleteResult{}, (*service).ChoosePodsToDelete),
	"BatchComputeIndexes":     itemwise(&jobpolicyv1.BatchComputeIndexesResult{}, (*service).ComputeIndexes),
}

// itemwise returns the batch whose items are requests of the method answer. Every
// result has the answer in its field 1, or else the item's error in field 2.
func itemwise[T any, Req interface {
	*T
	proto.Message
}, Resp proto.Message](result proto.Message, answer func(*service, context.Context, Req) (Resp, error)) batch {
	empty := result.ProtoReflect()
	fields := empty.Descriptor().Fields()
	return func(ctx context.Context, s *service, t *turn, item []byte) (proto.Message, error) {
		resp, failure, err := answerItem(ctx, t, item, Req(new(T)), func(ctx context.Context, req Req) (Resp, error) {
			return answer(s, ctx, req)
		})
		if err != nil {
			return nil, err
		}
		r := empty.New()
		if failure != nil {
			r.Set(fields.ByNumber(errorField), protoreflect.ValueOfMessage(failure.ProtoReflect()))
		} else {
			r.Set(fields.ByNumber(answerField), protoreflect.ValueOfMessage(resp.ProtoReflect()))
		}
		return r.Interface(), nil
	}
}

// answerItem waits for the item's turn, decodes the item and answers it. failure is an
// error of this item alone; err fails the whole batch.
func answerItem[Req proto.Message, Resp any](ctx context.Context, t *turn, item []byte, req Req,
	answer func(context.Context, Req) (Resp, error),
) (resp Resp, failure *statusv1.Status, err error) {
	if err = t.decode(ctx, item, req); err == nil {
		if resp, err = answer(ctx, req); err == nil {
			return resp, nil, nil
		}
	}
	switch status.Code(err) {
	case codes.ResourceExhausted, codes.Canceled, codes.DeadlineExceeded:
		return resp, nil, err
	default:
		return resp, status.Convert(refusal.WithReason(err)).Proto(), nil
	}
}

// answerBatch answers the items one after the other, and encodes their results. A caller
// that wants several processors sends several batches.
func (s *service) answerBatch(ctx context.Context, c *call, one batch, body []byte, answer *encoded) error {
	t := &turn{call: c}
	defer t.end()
	if err := t.begin(ctx); err != nil {
		return err
	}
	if err := checkBatch(body); err != nil {
		return err
	}
	for item := range batchItems(body) {
		result, err := one(ctx, s, t, item)
		if err != nil {
			return err
		}
		if err := answer.addItem(resultsField, result); err != nil {
			return err
		}
	}
	// A caller that is gone, or whose deadline has passed, gets no answer.
	return refusal.FromContextOf(ctx)
}

// checkBatch reports what is wrong with an encoded batch. The items are not looked at.
func checkBatch(body []byte) error {
	items := 0
	for len(body) > 0 {
		number, wireType, size := nextField(body)
		switch {
		case size < 0 || (number == batchField && wireType != protowire.BytesType):
			return notABatch()
		case number == batchField:
			items++
		case !unknown.Ignorable(number):
			return refusal.FromEngine(engine.Unsupported(unknown.Field(number)))
		}
		if items > maxBatch {
			return refusal.InvalidArgument(engine.FieldViolation{
				Field: "requests", Description: fmt.Sprintf("must have at most %d items, has more", maxBatch),
			})
		}
		body = body[size:]
	}
	return nil
}

// batchItems returns the encoded items of a batch, after checkBatch. There is no list of
// them: the garbage collector would look at every item of every batch that waits for its turn.
func batchItems(body []byte) iter.Seq[[]byte] {
	return func(yield func(item []byte) bool) {
		for len(body) > 0 {
			number, _, size := nextField(body)
			field := body[:size]
			body = body[size:]
			if number != batchField {
				continue
			}
			_, _, tag := protowire.ConsumeTag(field)
			if item, _ := protowire.ConsumeBytes(field[tag:]); !yield(item) {
				return
			}
		}
	}
}

// nextField returns the number, the type and the size of the first field, with its tag. The
// size is negative if the bytes are not a field.
func nextField(body []byte) (number protowire.Number, wireType protowire.Type, size int) {
	number, wireType, tag := protowire.ConsumeTag(body)
	if tag < 0 {
		return number, wireType, tag
	}
	value := protowire.ConsumeFieldValue(number, wireType, body[tag:])
	if value < 0 {
		return number, wireType, value
	}
	return number, wireType, tag + value
}

func notABatch() error {
	return refusal.InvalidArgument(engine.FieldViolation{Description: "the bytes are not a valid batch message"})
}
