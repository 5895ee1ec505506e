package cronjob_test

import (
	"errors"
	"flag"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/cronjob"
	"jobpolicy.dev/proto/conformance/casefile"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

var writeCases = flag.Bool("conformance.write", false, "write the cases of proto/conformance")

// A caseFile collects requests to the engine and its answers, so that other engines
// can be compared with it.
type caseFile struct{ casefile.File }

// refuse notes that a request is invalid in a field.
func (f *caseFile) refuse(req *jobpolicyv1.DecideCronJobRequest, field string) {
	f.Refuse(req, field, func(read proto.Message) bool {
		_, err := cronjob.Decide(read.(*jobpolicyv1.DecideCronJobRequest))
		invalid := (*engine.InvalidRequestError)(nil)
		return errors.As(err, &invalid) && slices.ContainsFunc(invalid.Violations, func(v engine.FieldViolation) bool { return v.Field == field })
	})
}

// check compares with the file of the scenario, or writes it.
func (f *caseFile) check(t *testing.T, scenario string) {
	t.Helper()
	if err := f.Check(filepath.Join("../../proto/conformance/decide_cron_job", scenario+".jsonl"), *writeCases); err != nil {
		t.Error(err)
	}
}
