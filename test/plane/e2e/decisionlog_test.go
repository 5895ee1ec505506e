package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"jobpolicy.dev/deploy/local/must"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// Every decision of a Job is in the log, with what became of it, and the engine decides
// the whole log again in the same way.
func TestDecisionLogIsDecidedAgain(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createJob(t, namespace, "logged", batchv1.JobSpec{Template: shell("true", corev1.RestartPolicyNever)})
	waitFinished(t, namespace, "logged")
	var log []byte
	eventually(t, "the end of the Job is in the log", func() (bool, string) {
		text, err := os.ReadFile(decisionLog)
		if err != nil {
			return false, err.Error()
		}
		log = text[:bytes.LastIndexByte(text, '\n')+1]
		return ended(t, log, namespace), ""
	})
	file := filepath.Join(t.TempDir(), "decisions.log")
	must.Succeed(t, os.WriteFile(file, log, 0o600))
	out, err := plugin(t, "replay", file)
	if err != nil || !strings.Contains(out, " 0 different") {
		t.Errorf("error %v, want no difference:\n%s", err, out)
	}
}

// ended reports whether the log has the decision that ended the Job of a namespace.
func ended(t *testing.T, log []byte, namespace string) bool {
	t.Helper()
	for line := range bytes.Lines(log) {
		var record jobpolicyv1.DecisionRecord
		if err := protojson.Unmarshal(line, &record); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		job := record.GetJob()
		if job.GetRequest().GetJob().GetNamespace() != namespace || record.GetOutcome() != jobpolicyv1.ApplyOutcome_APPLY_OUTCOME_APPLIED {
			continue
		}
		for _, c := range job.GetResponse().GetStatus().GetConditions() {
			if c.GetType() == string(batchv1.JobComplete) && len(record.GetTraceId()) == 16 {
				return true
			}
		}
	}
	return false
}
