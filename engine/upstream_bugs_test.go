package engine_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// upstreamBugs are defects that users of the built-in job controller met, by the
// number of the issue or pull request in kubernetes/kubernetes, and the one scenario
// file that shows what this engine does instead. Defects that only an executor can
// have are not included.
var upstreamBugs = map[string]struct{ happened, scenario string }{
	"27997":  {"a Job created 84000 pods in one go", "creation_inflight"},
	"78796":  {"after a creation that timed out no pod was created for hours", "creation_unknown"},
	"104666": {"pods beyond the 500 that a status holds were forgotten", "ledger_cap"},
	"105200": {"a pod was counted twice, because a stale view still showed its finalizer", "ledger_protocol"},
	"108645": {"pods of a deleted Job kept the finalizer for ever", "deleting_job"},
	"109429": {"a Job was declared finished before all its pods were seen", "publish_order"},
	"114516": {"the controller's own patch of a pod reset the retry delay", "retry_own_writes"},
	"119159": {"a Job was declared finished while pods held the finalizer", "publish_order"},
	"123775": {"a Job was declared finished while pods were ready or terminating", "publish_order"},
	"124937": {"the retry delay left out the end of a sidecar", "retry_sidecar"},
	"125410": {"a pod that succeeded, then failed, stood in both lists of the status, which is refused", "ledger_protocol"},
	"130683": {"two pods ran where one was asked for", "creation_inflight"},
	"130881": {"disruptions ignored by the pod failure policy delayed the next pod", "failurepolicy_actions"},
	"132144": {"a suspended Job with 0 completions never became Complete", "completions_zero_suspended"},
	"134521": {"resuming a Job removed its start time, which is refused, for ever", "suspend_resume"},
	"139281": {"the spec of a suspended Job could not change before its condition was written", "suspend_more"},
	"139428": {"during a retry delay active was 0 below ready, which is refused", "creation_inflight"},
	"142330": {"a gang never replaced a failed pod, because pods that had ended counted for its minimum", "gang_size"},
	"142142": {"a Job recreated under its name got no pods for minutes", "recreated_job"},
}

var upstreamNumber = regexp.MustCompile(`kubernetes#(\d+)`)

func TestEachUpstreamBugHasItsScenario(t *testing.T) {
	want := map[string][]string{}
	for number, bug := range upstreamBugs {
		want[number] = []string{bug.scenario}
	}
	got := map[string][]string{}
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		for _, match := range upstreamNumber.FindAllStringSubmatch(string(text), -1) {
			if !slices.Contains(got[match[1]], name) {
				got[match[1]] = append(got[match[1]], name)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("scenario files by the upstream number that they name (-want +got):\n%s", diff)
	}
}
