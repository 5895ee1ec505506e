package tracker

import (
	"bytes"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func encoded(t *testing.T, e *jobpolicyv1.Explanation) []byte {
	t.Helper()
	b, err := proto.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestVerdictIsTheDecisionThatCameFirst(t *testing.T) {
	decided := &jobpolicyv1.Explanation{DecidingRule: jobpolicyv1.Rule_RULE_BACKOFF_LIMIT_EXCEEDED}
	otherwise := &jobpolicyv1.Explanation{DecidingRule: jobpolicyv1.Rule_RULE_DEADLINE_PASSED}
	repeated := &jobpolicyv1.Explanation{DecidingRule: jobpolicyv1.Rule_RULE_FAILURE_ALREADY_DECLARED}
	cases := map[string]struct {
		decisions []*jobpolicyv1.Explanation
		want      *jobpolicyv1.Explanation
	}{
		"nothing decided yet":                         {[]*jobpolicyv1.Explanation{{}}, nil},
		"a repeated verdict keeps its reason":         {[]*jobpolicyv1.Explanation{{}, decided, repeated, repeated}, decided},
		"a verdict that was never written may change": {[]*jobpolicyv1.Explanation{decided, otherwise}, otherwise},
		"a verdict that was never written may go":     {[]*jobpolicyv1.Explanation{decided, {}}, nil},
		"declared before a restart":                   {[]*jobpolicyv1.Explanation{repeated, repeated}, repeated},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var d Job
			for _, explanation := range tc.decisions {
				var verdict *jobpolicyv1.Verdict
				if rule := explanation.GetDecidingRule(); rule != 0 {
					verdict = &jobpolicyv1.Verdict{Rule: rule, Repeated: explanation == repeated}
				}
				d.Decided(time.Now(), verdict, encoded(t, explanation))
			}
			var want []byte
			if tc.want != nil {
				want = encoded(t, tc.want)
			}
			if got := d.LastDecision().Verdict; !bytes.Equal(got, want) {
				t.Errorf("the verdict is explained by %q, want %v", got, tc.want)
			}
		})
	}
}
