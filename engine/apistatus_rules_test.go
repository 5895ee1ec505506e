package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
)

// The restated rules of the API server must be able to refuse: each case breaks
// exactly one.
func TestStatusChangeRules(t *testing.T) {
	cases := map[string]struct {
		spec, old, next string
		want            string
	}{
		"nothing wrong":                      {next: "status active=2 ready=1 start=0s"},
		"negative count":                     {next: "status failed=-1", old: "status failed=-1", want: "counts are not negative"},
		"a UID twice":                        {next: "status uncountedSucceeded=a uncountedFailed=a", want: "each UID stands once in uncounted"},
		"ready above active":                 {next: "status active=1 ready=2", want: "ready is not above active"},
		"ready above active as it was":       {old: "status active=1 ready=2", next: "status active=1 ready=2"},
		"failed decreases":                   {old: "status failed=2", next: "status failed=1", want: "failed does not decrease"},
		"succeeded decreases":                {old: "status succeeded=2", next: "status succeeded=1", want: "succeeded does not decrease"},
		"succeeded decreases elastically":    {spec: "mode=Indexed completions=1", old: "status succeeded=2", next: "status succeeded=1"},
		"start moves":                        {old: "status start=0s", next: "status start=1s", want: "the start time of a running Job stays"},
		"start moves while suspended":        {spec: "suspend", old: "status start=0s", next: "status start=1s"},
		"start moves by a resume":            {old: "status start=0s\ncondition Suspended", next: "status start=1s\ncondition Suspended status=False"},
		"completion time without Complete":   {next: "status completion=1s", want: "a completion time needs Complete"},
		"FailureTarget goes":                 {old: "condition FailureTarget", next: "status active=1", want: "Failed, Complete, FailureTarget and SuccessCriteriaMet stay"},
		"Failed out of the blue":             {next: "status start=0s\ncondition Failed", want: "Failed needs FailureTarget"},
		"Complete out of the blue":           {next: "status start=0s completion=0s\ncondition Complete", want: "Complete needs SuccessCriteriaMet"},
		"Failed with active pods":            {old: "condition FailureTarget", next: "status start=0s active=1\ncondition FailureTarget\ncondition Failed", want: "a finished Job has no active pods"},
		"Failed with terminating pods":       {old: "condition FailureTarget", next: "status start=0s terminating=1\ncondition FailureTarget\ncondition Failed", want: "a finished Job has no terminating pods"},
		"Failed with uncounted pods":         {old: "condition FailureTarget", next: "status start=0s uncountedFailed=a\ncondition FailureTarget\ncondition Failed", want: "a finished Job has nothing uncounted"},
		"Failed without start":               {old: "condition FailureTarget", next: "condition FailureTarget\ncondition Failed", want: "a finished Job has a start time"},
		"both verdicts":                      {next: "condition FailureTarget\ncondition SuccessCriteriaMet", want: "SuccessCriteriaMet excludes Failed and FailureTarget"},
		"completed indexes without indexes":  {next: "status completed=0", want: "completed indexes are those of an Indexed Job"},
		"completed indexes out of range":     {spec: "mode=Indexed completions=2", next: "status completed=2", want: "completed indexes are those of an Indexed Job"},
		"failed indexes without their limit": {spec: "mode=Indexed completions=2", next: "status failedIndexes=1", want: "failed indexes are those of a Job with limits per index"},
		"an index both ways":                 {spec: "mode=Indexed completions=2 backoffLimitPerIndex=1", next: "status completed=1 failedIndexes=1", want: "no index is both completed and failed"},
		"completion before start": {
			old: "status start=5s\ncondition SuccessCriteriaMet", next: "status start=5s completion=4s\ncondition SuccessCriteriaMet\ncondition Complete",
			want: "completion is not before start",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			change := statusChange{}
			s := newScene()
			s.mustTell(t, "job "+tc.spec+"\nstatus\n"+tc.old)
			change.spec, change.old = proto.CloneOf(s.req.Spec), s.req.Status
			s.mustTell(t, "job\nstatus\n"+tc.next)
			change.new = s.req.Status
			var want []string
			if tc.want != "" {
				want = []string{tc.want}
			}
			if diff := cmp.Diff(want, change.violations()); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}
