package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/proto/conformance"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
)

// maxLineBytes bounds one case.
const maxLineBytes = 1 << 20

// A result is what became of one case.
type result struct {
	suite, name string
	took        time.Duration
	problem     string // Empty: the answer is right.
}

// check puts every case to the engine. It fails when the engine cannot be reached, and
// not when an answer is wrong.
func check(ctx context.Context, engine jobpolicyv1grpc.PolicyServiceClient, timeout time.Duration) ([]result, error) {
	first, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if _, err := engine.GetServerInfo(first, &jobpolicyv1.GetServerInfoRequest{}); err != nil {
		return nil, fmt.Errorf("GetServerInfo: %w", err)
	}
	var results []result
	files, err := fs.Glob(conformance.Files, "*/*.jsonl")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		cases, err := readCases(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		suite := strings.TrimSuffix(file, path.Ext(file))
		for i, c := range cases {
			begun := time.Now()
			err := c.ask(ctx, engine, timeout)
			r := result{suite: suite, name: fmt.Sprintf("line %d", i+1), took: time.Since(begun)}
			if err != nil {
				r.problem = err.Error()
			}
			results = append(results, r)
		}
	}
	return results, nil
}

// A question is a case that is ready to be asked.
type question struct {
	request  proto.Message
	response proto.Message // Nil if the request is to be refused.
	refusal  *conformance.Error
}

// newQuestion is a question of a folder's method, with nothing in it yet.
func newQuestion(folder string) question {
	if folder == "decide_cron_job" {
		return question{request: &jobpolicyv1.DecideCronJobRequest{}, response: &jobpolicyv1.DecideCronJobResponse{}}
	}
	return question{request: &jobpolicyv1.DecideJobRequest{}, response: &jobpolicyv1.DecideJobResponse{}}
}

// put asks once.
func (q question) put(ctx context.Context, engine jobpolicyv1grpc.PolicyServiceClient) (proto.Message, error) {
	if cron, ok := q.request.(*jobpolicyv1.DecideCronJobRequest); ok {
		return engine.DecideCronJob(ctx, cron)
	}
	return engine.DecideJob(ctx, q.request.(*jobpolicyv1.DecideJobRequest))
}

func readCases(file string) ([]question, error) {
	data, err := conformance.Files.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var cases []question
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxLineBytes)
	for lines.Scan() {
		var c conformance.Case
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return nil, err
		}
		q := newQuestion(path.Dir(file))
		if err := protojson.Unmarshal(c.Request, q.request); err != nil {
			return nil, err
		}
		if q.refusal = c.Error; q.refusal == nil {
			if err := protojson.Unmarshal(c.Response, q.response); err != nil {
				return nil, err
			}
		}
		cases = append(cases, q)
	}
	return cases, lines.Err()
}

// ask asks twice, because the same request always gets the same answer (I7), and says
// what is wrong with the answer.
func (q question) ask(ctx context.Context, engine jobpolicyv1grpc.PolicyServiceClient, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, 2*timeout)
	defer cancel()
	got, err := q.put(ctx, engine)
	if q.refusal != nil {
		return q.checkRefusal(err)
	}
	if err != nil {
		return fmt.Errorf("got the error %w, want an answer", err)
	}
	again, err := q.put(ctx, engine)
	if err != nil || !proto.Equal(got, again) {
		return fmt.Errorf("the same request got another answer the second time: %w", err)
	}
	m := got.ProtoReflect()
	m.Clear(m.Descriptor().Fields().ByName("explanation"))
	if !proto.Equal(got, q.response) {
		return fmt.Errorf("request: %s\ngot:     %s\nwant:    %s", text(q.request), text(got), text(q.response))
	}
	return nil
}

func text(m proto.Message) string {
	written, err := protojson.Marshal(m)
	if err != nil {
		return err.Error()
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, written); err != nil {
		return err.Error()
	}
	return compact.String()
}

// checkRefusal compares code, reason and field.
func (q question) checkRefusal(err error) error {
	if err == nil {
		return fmt.Errorf("got an answer, want the error %s for %s", q.refusal.Code, q.refusal.Field)
	}
	var want codes.Code
	if err := want.UnmarshalJSON([]byte(`"` + q.refusal.Code + `"`)); err != nil {
		return err
	}
	if status.Code(err) != want {
		return fmt.Errorf("got the code %s, want %s: %w", status.Code(err), want, err)
	}
	var problems []error
	if !hasReason(err, q.refusal.Reason) {
		problems = append(problems, fmt.Errorf("no google.rpc.ErrorInfo has the reason %s: %w", q.refusal.Reason, err))
	}
	if !namesField(err, q.refusal.Field) {
		problems = append(problems, fmt.Errorf("no google.rpc.BadRequest names the field %s: %w", q.refusal.Field, err))
	}
	return errors.Join(problems...)
}

func hasReason(err error, reason string) bool {
	return jobpolicyv1grpc.ReasonName(jobpolicyv1grpc.ReasonOf(err)) == reason
}

func namesField(err error, field string) bool {
	for _, detail := range status.Convert(err).Details() {
		bad, ok := detail.(*errdetails.BadRequest)
		for _, violation := range bad.GetFieldViolations() {
			if ok && violation.GetField() == field {
				return true
			}
		}
	}
	return false
}
