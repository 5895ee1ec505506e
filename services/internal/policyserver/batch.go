package policyserver

import (
	"context"
	"fmt"

	statusv1 "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/unknown"
	"jobpolicy.dev/services/internal/refusal"
)

// Every batch has its items, and every answer its results, in one field.
const (
	batchField   = protowire.Number(1) // requests
	resultsField = protowire.Number(1) // results
)

// A batch answers one encoded item of a batch. An error is one of the whole
// batch: there was no room, or the caller is gone.
type batch func(ctx context.Context, s *service, t *turn, item []byte) (result proto.Message, err error)

// batches are the methods that are answered item by item: the whole request is
// never decoded, nor its answer ever there undone.
var batches = map[string]batch{
	"DecideJobs": func(ctx context.Context, s *service, t *turn, item []byte) (proto.Message, error) {
		result := &jobpolicyv1.DecideJobsResult{}
		decision, failure, err := answerItem(ctx, t, item, &jobpolicyv1.DecideJobRequest{}, s.DecideJob)
		result.Result = &jobpolicyv1.DecideJobsResult_Decision{Decision: decision}
		if failure != nil {
			result.Result = &jobpolicyv1.DecideJobsResult_Error{Error: failure}
		}
		return result, err
	},
	"DecideCronJobs": func(ctx context.Context, s *service, t *turn, item []byte) (proto.Message, error) {
		result := &jobpolicyv1.DecideCronJobsResult{}
		decision, failure, err := answerItem(ctx, t, item, &jobpolicyv1.DecideCronJobRequest{}, s.DecideCronJob)
		result.Result = &jobpolicyv1.DecideCronJobsResult_Decision{Decision: decision}
		if failure != nil {
			result.Result = &jobpolicyv1.DecideCronJobsResult_Error{Error: failure}
		}
		return result, err
	},
	"CheckJobStatuses": func(ctx context.Context, s *service, t *turn, item []byte) (proto.Message, error) {
		result := &jobpolicyv1.CheckJobStatusesResult{}
		response, failure, err := answerItem(ctx, t, item, &jobpolicyv1.CheckJobStatusRequest{}, s.CheckJobStatus)
		result.Result = &jobpolicyv1.CheckJobStatusesResult_Response{Response: response}
		if failure != nil {
			result.Result = &jobpolicyv1.CheckJobStatusesResult_Error{Error: failure}
		}
		return result, err
	},
}

// answerItem decodes one item, when it is its turn, and answers it. The failure
// is the item's own.
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
	items, err := splitBatch(body)
	if err != nil {
		return err
	}
	t := &turn{call: c}
	defer t.end()
	for _, item := range items {
		result, err := one(ctx, s, t, item)
		if err != nil {
			return err
		}
		if err := answer.addItem(resultsField, result); err != nil {
			return err
		}
	}
	// A caller that is gone, or whose time is up, gets no half-done batch.
	return refusal.FromContextOf(ctx)
}

// splitBatch returns the items of an encoded batch, undecoded.
func splitBatch(body []byte) ([][]byte, error) {
	var items [][]byte
	for len(body) > 0 {
		number, wireType, n := protowire.ConsumeTag(body)
		if n < 0 {
			return nil, notABatch()
		}
		size := protowire.ConsumeFieldValue(number, wireType, body[n:])
		if size < 0 || (number == batchField && wireType != protowire.BytesType) {
			return nil, notABatch()
		}
		switch {
		case number != batchField && !unknown.Ignorable(number):
			return nil, refusal.FromEngine(engine.Unsupported(unknown.Field(number)))
		case number == batchField:
			item, _ := protowire.ConsumeBytes(body[n:])
			items = append(items, item)
		}
		if len(items) > maxBatch {
			return nil, refusal.InvalidArgument(engine.FieldViolation{
				Field: "requests", Description: fmt.Sprintf("must have at most %d items, has more", maxBatch),
			})
		}
		body = body[n+size:]
	}
	return items, nil
}

func notABatch() error {
	return refusal.InvalidArgument(engine.FieldViolation{Description: "the bytes are not a valid batch message"})
}
