package engine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/proto/conformance"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

var writeCases = flag.Bool("conformance.write", false, "write the cases of proto/conformance")

// maxCaseBytes leaves out requests that are only there to be large.
const maxCaseBytes = 64 << 10

// A caseFile collects requests to the engine and its answers, so that other engines
// can be compared with it.
type caseFile struct {
	lines [][]byte
	err   error
}

// add notes a decision, or the refusal of a request.
func (f *caseFile) add(req *jobpolicyv1.DecideJobRequest, resp *jobpolicyv1.DecideJobResponse, err error) {
	if invalid := (*engine.InvalidRequestError)(nil); errors.As(err, &invalid) {
		f.refuse(req, invalid.Violations[0].Field)
		return
	}
	if err != nil {
		return // JSON has no word for fields that are not known.
	}
	resp = proto.CloneOf(resp)
	resp.Explanation = nil
	f.append(conformance.Case{Request: f.json(req), Response: f.json(resp)})
}

// refuse notes that a request is invalid in a field.
func (f *caseFile) refuse(req *jobpolicyv1.DecideJobRequest, field string) {
	request, err := protojson.Marshal(req)
	if err != nil || len(request) > maxCaseBytes {
		return // A time that is none, for example, cannot be written.
	}
	// A row that is nil becomes an empty one, in which another field is wrong.
	read := &jobpolicyv1.DecideJobRequest{}
	f.err = errors.Join(f.err, protojson.Unmarshal(request, read))
	_, err = engine.DecideJob(read)
	invalid := (*engine.InvalidRequestError)(nil)
	if !errors.As(err, &invalid) || !slices.ContainsFunc(invalid.Violations, func(v engine.FieldViolation) bool { return v.Field == field }) {
		return
	}
	f.append(conformance.Case{Request: request, Error: &conformance.Error{
		Code: "INVALID_ARGUMENT", Reason: "INVALID_REQUEST", Field: field,
	}})
}

func (f *caseFile) json(m proto.Message) json.RawMessage {
	text, err := protojson.Marshal(m)
	f.err = errors.Join(f.err, err)
	return text
}

// append adds a line, unless it is there.
func (f *caseFile) append(c conformance.Case) {
	line, err := json.Marshal(c)
	f.err = errors.Join(f.err, err)
	if !slices.ContainsFunc(f.lines, func(other []byte) bool { return bytes.Equal(other, line) }) {
		f.lines = append(f.lines, line)
	}
}

// check compares with the file of the scenario, or writes it.
func (f *caseFile) check(t *testing.T, scenario string) {
	t.Helper()
	if f.err != nil {
		t.Fatal(f.err)
	}
	if len(f.lines) == 0 {
		return
	}
	file := filepath.Join("../proto/conformance/decide_job", strings.TrimSuffix(scenario, ".txt")+".jsonl")
	text := append(bytes.Join(f.lines, []byte("\n")), '\n')
	if *writeCases {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, text) {
		t.Errorf("%s is out of date: make cases writes it (%v)", file, err)
	}
}
