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
	"slices"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"jobpolicy.dev/proto/conformance"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
)

const (
	// maxLineBytes bounds one case.
	maxLineBytes = 1 << 20
	// contract is the version that is checked.
	contract = "jobpolicy.v1"
)

// A result is the result of one case.
type result struct {
	suite, name string
	took        time.Duration
	problem     string // Empty: the answer is right.
}

// check asks the engine every case. It fails if the engine cannot be reached, but not if an
// answer is wrong.
func check(ctx context.Context, engine grpc.ClientConnInterface, timeout time.Duration) ([]result, error) {
	first, err := serverInfo(ctx, engine, timeout)
	if err != nil {
		return nil, fmt.Errorf("GetServerInfo: %w", err)
	}
	results := []result{first}
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
		for _, c := range cases {
			results = append(results, timed(suite, c.name, func() error { return c.ask(ctx, engine, timeout) }))
		}
	}
	return results, nil
}

func timed(suite, name string, ask func() error) result {
	begun := time.Now()
	r := result{suite: suite, name: name}
	if err := ask(); err != nil {
		r.problem = err.Error()
	}
	r.took = time.Since(begun)
	return r
}

func serverInfo(ctx context.Context, engine grpc.ClientConnInterface, timeout time.Duration) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	info, err := jobpolicyv1grpc.NewPolicyServiceClient(engine).GetServerInfo(ctx, &jobpolicyv1.GetServerInfoRequest{})
	return timed("get_server_info", "serves "+contract, func() error {
		if !slices.Contains(info.GetContractVersions(), contract) {
			return fmt.Errorf("contract_versions are %q, want %q among them", info.GetContractVersions(), contract)
		}
		return nil
	}), err
}

// A question is a case that is ready to be asked.
type question struct {
	name     string
	method   string
	request  proto.Message
	response proto.Message // Not used if the request must be refused.
	refusal  *conformance.Error
}

// newQuestion returns an empty question for the method of a folder.
func newQuestion(folder string) (question, error) {
	methods := jobpolicyv1grpc.File_jobpolicy_v1_policy_service_proto.Services().ByName("PolicyService").Methods()
	name := strings.ReplaceAll(folder, "_", "")
	for i := range methods.Len() {
		m := methods.Get(i)
		if !strings.EqualFold(string(m.Name()), name) {
			continue
		}
		request, err := newMessage(m.Input())
		if err != nil {
			return question{}, err
		}
		response, err := newMessage(m.Output())
		return question{method: string(m.Name()), request: request, response: response}, err
	}
	return question{}, fmt.Errorf("the contract has no method %s", folder)
}

func newMessage(d protoreflect.MessageDescriptor) (proto.Message, error) {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		return nil, err
	}
	return t.New().Interface(), nil
}

// put makes one call.
func put(ctx context.Context, engine grpc.ClientConnInterface, method string, request, response proto.Message) error {
	return engine.Invoke(ctx, "/"+jobpolicyv1grpc.PolicyService_ServiceDesc.ServiceName+"/"+method, request, response)
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
		q, err := newQuestion(path.Dir(file))
		if err != nil {
			return nil, err
		}
		q.name = fmt.Sprintf("line %d", len(cases)+1)
		if c.Name != "" {
			q.name += ": " + c.Name
		}
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
	if err := lines.Err(); err != nil || len(cases) == 0 {
		return nil, errors.Join(errors.New("no cases"), err)
	}
	return cases, nil
}

// ask asks twice, because the same request always gets the same answer (I7), and says
// what is wrong with the answer.
func (q question) ask(ctx context.Context, engine grpc.ClientConnInterface, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, 2*timeout)
	defer cancel()
	got, again := q.response.ProtoReflect().New().Interface(), q.response.ProtoReflect().New().Interface()
	if err := put(ctx, engine, q.method, q.request, got); err != nil || q.refusal != nil {
		return q.compare(got, err)
	}
	if err := put(ctx, engine, q.method, q.request, again); err != nil {
		return fmt.Errorf("the same request got no answer the second time: %w", err)
	}
	if !proto.Equal(got, again) {
		return fmt.Errorf("the same request got another answer the second time\nfirst:  %s\nsecond: %s", text(got), text(again))
	}
	return q.compare(got, nil)
}

// compare compares the answer or error with the expected one.
func (q question) compare(got proto.Message, err error) error {
	if q.refusal != nil {
		return q.checkRefusal(err)
	}
	if err != nil {
		return fmt.Errorf("got the error %w, want an answer", err)
	}
	if got = conformance.Comparable(got); !proto.Equal(got, q.response) {
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
