package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A caller that is not ours: buf curl learns the contract from the engine by
// reflection and asks it about a snapshot in a file, as the README shows.
func TestEngineAnswersAnyCaller(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	snapshot := filepath.Join(root, "deploy/examples/snapshots/second-failure.json")
	keys := plane.EnginePKI()
	output, err := exec.CommandContext(t.Context(), bufPath(t, root), "curl", "--protocol", "grpc",
		"--cacert", keys.CAFile, "--cert", keys.CertFile, "--key", keys.KeyFile,
		"--data", "@"+snapshot, "https://"+plane.EngineAddress()+"/jobpolicy.v1.PolicyService/DecideJob").Output()
	if err != nil {
		t.Fatalf("buf curl: %v: %s", err, output)
	}
	var decision jobpolicyv1.DecideJobResponse
	if err := protojson.Unmarshal(output, &decision); err != nil {
		t.Fatalf("the answer is not a decision: %v", err)
	}
	if decision.GetRequestId() != "example-1" || len(decision.GetRelease()) != 1 || decision.GetStatus().GetFailed() != 1 {
		t.Errorf("the decision is %v", &decision)
	}
	if waits := decision.GetExplanation().GetWaits(); len(waits) != 1 || !strings.Contains(waits[0].GetDetail(), "20s") {
		t.Errorf("it waits for %v; the second failure delays by 20s", waits)
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
