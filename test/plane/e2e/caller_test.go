package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/deploy/local/must"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A caller of another project: buf curl reads the contract from the engine by
// reflection, and asks it about a snapshot in a file, as docs/calling.md shows.
func TestEngineAnswersAnyCaller(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*testing.T, *jobpolicyv1.DecideJobResponse){
		"second-failure": func(t *testing.T, decision *jobpolicyv1.DecideJobResponse) {
			if decision.GetRequestId() != "example-1" || len(decision.GetRelease()) != 1 || decision.GetStatus().GetFailed() != 1 {
				t.Errorf("the decision is %v", decision)
			}
			if waits := decision.GetExplanation().GetWaits(); len(waits) != 1 || !strings.Contains(waits[0].GetDetail(), "20s") {
				t.Errorf("it waits for %v; the second failure delays by 20s", waits)
			}
		},
		"exit-42": func(t *testing.T, decision *jobpolicyv1.DecideJobResponse) {
			conditions := decision.GetStatus().GetConditions()
			if decision.GetRequestId() != "example-2" || len(conditions) != 1 || len(decision.GetDelete()) != 0 {
				t.Fatalf("the verdict is written before a pod is deleted for it; the decision is %v", decision)
			}
			const message = "Container main for pod default/job-pod-failure-policy-example-x7k2p failed with exit code 42 matching FailJob rule at index 0"
			if c := conditions[0]; c.GetType() != "FailureTarget" || c.GetReason() != "PodFailurePolicy" || c.GetMessage() != message {
				t.Errorf("the condition is %v", c)
			}
			if rule := decision.GetExplanation().GetDecidingRule().Name(); rule != "podFailurePolicyMatched" {
				t.Errorf("rule %q decides", rule)
			}
		},
		"failed-index": func(t *testing.T, decision *jobpolicyv1.DecideJobResponse) {
			want := &jobpolicyv1.IndexSet{Ranges: []*jobpolicyv1.IndexRange{{First: 0, Last: 0}, {First: 2, Last: 2}}}
			must.Equal(t, "failed indexes", want, decision.GetStatus().GetFailedIndexes(), protocmp.Transform())
			next := &jobpolicyv1.IndexSet{Ranges: []*jobpolicyv1.IndexRange{{First: 6, Last: 6}}}
			must.Equal(t, "created indexes", next, decision.GetCreate().GetIndexes(), protocmp.Transform())
			if rule := decision.GetExplanation().GetDecidingRule().Name(); decision.GetRequestId() != "example-3" || rule != "" {
				t.Errorf("rule %q decides on %s, although indexes are left", rule, decision.GetRequestId())
			}
		},
	}
	for name, judge := range cases {
		t.Run(name, func(t *testing.T) {
			var decision jobpolicyv1.DecideJobResponse
			askByBuf(t, "DecideJob", name+".json", &decision)
			judge(t, &decision)
		})
	}
}

// A nightly CronJob whose controller was down for a week, Berlin time. The run that is
// listed as active ended long ago, so the newest missed run starts, and the six before
// it do not.
func TestEngineAnswersAnyCallerAboutMissedRuns(t *testing.T) {
	t.Parallel()
	var decision jobpolicyv1.DecideCronJobResponse
	askByBuf(t, "DecideCronJob", "missed-schedule.json", &decision)
	create := &jobpolicyv1.CreateJob{
		Name: "nightly-29463930", ScheduledTime: timestamppb.New(time.Date(2026, 1, 8, 1, 30, 0, 0, time.UTC)),
		UtcOffsetSeconds: 3600,
	}
	must.Equal(t, "created Job", create, decision.GetCreate(), protocmp.Transform())
	if decision.GetRequestId() != "example-4" || decision.GetStatus() != nil || len(decision.GetDelete()) != 0 {
		t.Errorf("the decision is %v", &decision)
	}
	why := decision.GetExplanation()
	if why.GetDecidingRule() != jobpolicyv1.Rule_RULE_RUN_DUE || why.GetSkippedTotal() != 6 || len(why.GetSkipped()) != 6 {
		t.Errorf("rule %q decides and %d runs are skipped: %v", why.GetDecidingRule(), why.GetSkippedTotal(), why.GetSkipped())
	}
	if next := why.GetNextScheduleTime().AsTime(); !next.Equal(time.Date(2026, 1, 9, 1, 30, 0, 0, time.UTC)) {
		t.Errorf("the next run is due at %v", next)
	}
}

// askByBuf sends an example snapshot to a method of the engine, and returns its answer.
func askByBuf(t *testing.T, method, snapshot string, decision proto.Message) {
	t.Helper()
	root, err := filepath.Abs("../../..")
	must.Succeed(t, err)
	keys := plane.EnginePKI()
	output, err := exec.CommandContext(t.Context(), bufPath(t, root), "curl", "--protocol", "grpc",
		"--cacert", keys.CAFile, "--cert", keys.CertFile, "--key", keys.KeyFile,
		"--data", "@"+filepath.Join(root, "deploy/examples/snapshots", snapshot), "https://"+plane.EngineAddress()+"/jobpolicy.v1.PolicyService/"+method).Output()
	if err != nil {
		t.Fatalf("buf curl: %v: %s", err, output)
	}
	if err := protojson.Unmarshal(output, decision); err != nil {
		t.Fatalf("the answer is not a decision: %v", err)
	}
}

// bufPath returns buf, which make builds from its pinned version.
func bufPath(t *testing.T, root string) string {
	t.Helper()
	path := filepath.Join(root, ".bin", "buf")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	install := exec.CommandContext(t.Context(), "go", "-C", filepath.Join(root, "tools"), "build", "-o", path, "github.com/bufbuild/buf/cmd/buf")
	install.Env = append(os.Environ(), "GOWORK=off")
	if output, err := install.CombinedOutput(); err != nil {
		t.Fatalf("build buf: %v: %s", err, output)
	}
	return path
}
