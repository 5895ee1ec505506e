package engine_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/proto/conformance"
	"jobpolicy.dev/proto/conformance/casefile"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

var writeCases = flag.Bool("conformance.write", false, "write the cases of proto/conformance")

// A caseFile collects requests to the engine and its answers, so that other engines
// can be compared with it.
type caseFile struct{ casefile.File }

// add notes a decision, or the refusal of a request. JSON has no word for fields that
// are not known.
func (f *caseFile) add(req *jobpolicyv1.DecideJobRequest, resp *jobpolicyv1.DecideJobResponse, err error) {
	if invalid, ok := errors.AsType[*engine.InvalidRequestError](err); ok {
		f.refuse(req, invalid.Violations[0].Field)
	}
	if err == nil {
		f.Add(req, resp)
	}
}

// refuse notes that a request is invalid in a field.
func (f *caseFile) refuse(req *jobpolicyv1.DecideJobRequest, field string) {
	f.Refuse(req, field, func(read proto.Message) bool {
		_, err := engine.DecideJob(read.(*jobpolicyv1.DecideJobRequest))
		invalid, ok := errors.AsType[*engine.InvalidRequestError](err)
		return ok && slices.ContainsFunc(invalid.Violations, func(v engine.FieldViolation) bool { return v.Field == field })
	})
}

// check compares with the file of the scenario, or writes it.
func (f *caseFile) check(t *testing.T, scenario string) {
	t.Helper()
	name := strings.TrimSuffix(scenario, ".txt") + ".jsonl"
	if err := f.Check(filepath.Join("../proto/conformance/decide_job", name), *writeCases); err != nil {
		t.Error(err)
	}
}

func readCases(t testing.TB, file string) (cases []conformance.Case) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var c conformance.Case
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	return cases
}
