package statusrules_test

import (
	"flag"
	"maps"
	"slices"
	"testing"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/statusrules"
	"jobpolicy.dev/proto/conformance/casefile"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

var writeCases = flag.Bool("conformance.write", false, "write the cases of proto/conformance")

// The cases of the newest API server, of the oldest and of one between, for other
// engines.
func TestConformanceCases(t *testing.T) {
	var file casefile.File
	cases := ruleCases()
	for _, minor := range []int32{statusrules.OldestMinor, 31, statusrules.NewestMinor} {
		for _, name := range slices.Sorted(maps.Keys(cases)) {
			tr := cases[name].transition()
			req := &jobpolicyv1.CheckJobStatusRequest{
				KubernetesMinor: minor,
				Updates:         []*jobpolicyv1.JobStatusUpdate{{Spec: tr.Spec, Before: tr.Before, After: tr.After}},
			}
			resp, err := engine.CheckJobStatus(req)
			if err != nil {
				continue // The RPC wants more of a request than the rules do.
			}
			file.AddNamed(name, req, resp)
		}
	}
	if err := file.Check("../../proto/conformance/check_job_status/rules.jsonl", *writeCases); err != nil {
		t.Error(err)
	}
}
