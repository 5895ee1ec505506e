package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	statusv1 "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// batches are the methods that answer many requests of another method, by its name. All of
// them have the requests in one field, and the results in another.
var batches = map[string]string{
	"DecideJob": "DecideJobs", "DecideCronJob": "DecideCronJobs", "CheckJobStatus": "CheckJobStatuses",
	"MatchSuccessPolicy": "BatchMatchSuccessPolicy",
	"ChoosePodsToDelete": "BatchChoosePodsToDelete",
	"ComputeIndexes":     "BatchComputeIndexes",
}

// askAll asks all cases in one call of a batch method. The results must be in the order of
// the cases, and each must be the same as that of a single call.
func askAll(ctx context.Context, engine grpc.ClientConnInterface, batch string, cases []question, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	q, err := newQuestion(batch)
	if err != nil {
		return err
	}
	request := q.request.ProtoReflect()
	requests := request.Mutable(request.Descriptor().Fields().ByName("requests")).List()
	for _, c := range cases {
		requests.Append(protoreflect.ValueOfMessage(c.request.ProtoReflect()))
	}
	if err := put(ctx, engine, batch, q.request, q.response); err != nil {
		return fmt.Errorf("got the error %w, want an answer for each item", err)
	}
	response := q.response.ProtoReflect()
	results := response.Get(response.Descriptor().Fields().ByName("results")).List()
	if results.Len() != len(cases) {
		return fmt.Errorf("got %d results, want %d", results.Len(), len(cases))
	}
	var problems []error
	for i, c := range cases {
		if err := c.compare(item(results.Get(i).Message())); err != nil {
			problems = append(problems, fmt.Errorf("results[%d]: %w", i, err))
		}
	}
	return errors.Join(problems...)
}

// item is the answer or the error of one result; both are nil if it has neither.
func item(result protoreflect.Message) (answer proto.Message, err error) {
	field := result.WhichOneof(result.Descriptor().Oneofs().ByName("result"))
	if field == nil {
		return nil, errors.New("no result")
	}
	m := result.Get(field).Message().Interface()
	if s, ok := m.(*statusv1.Status); ok {
		return nil, status.ErrorProto(s)
	}
	return m, nil
}
