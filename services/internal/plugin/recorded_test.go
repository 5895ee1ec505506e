package plugin

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/testapi"
)

// A recording is what a real API server showed of a Job at a moment:
// jobpolicy-local demo --record services/internal/plugin/testdata/recorded writes them.
type recording struct {
	Now    time.Time
	Job    *batchv1.Job
	Pods   []corev1.Pod
	Events []corev1.Event
}

// Explain, timeline and wait say the same of the Jobs of the documents' manifests as when
// these were recorded, midway and at their end. Run with -rewrite after a change, and read
// the difference.
func TestRecordedJobs(t *testing.T) {
	files, err := filepath.Glob("testdata/recorded/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	t.Cleanup(func() { now = time.Now })
	rewriting := flag.Lookup("rewrite").Value.String() == "true"
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var rec recording
			if err := json.Unmarshal(data, &rec); err != nil {
				t.Fatal(err)
			}
			now = func() time.Time { return rec.Now }
			got := tellAll(t, &rec)
			golden := strings.TrimSuffix(file, ".json") + ".txt"
			if rewriting {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

// Each manifest of the documents has a recording, from midway or from the end.
func TestEachExampleIsRecorded(t *testing.T) {
	manifests, err := filepath.Glob("../../../deploy/examples/*.yaml")
	if err != nil || len(manifests) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, manifest := range manifests {
		name := strings.TrimSuffix(filepath.Base(manifest), ".yaml")
		recordings, err := filepath.Glob(filepath.Join("testdata/recorded", name+"-*.json"))
		if err != nil || len(recordings) == 0 {
			t.Errorf("%s has no recording (jobpolicy-local demo --record): %v", name, err)
		}
	}
}

// tellAll runs the commands about the recorded Job.
func tellAll(t *testing.T, rec *recording) string {
	t.Helper()
	rec.Job.APIVersion, rec.Job.Kind = "batch/v1", "Job"
	api := testapi.Start(t, rec.Job)
	api.Pods, api.Events = rec.Pods, rec.Events
	var out bytes.Buffer
	for _, args := range [][]string{{"explain", "-o", "wide"}, {"timeline"}, {"wait", "--timeout", "1ms"}} {
		fmt.Fprintf(&out, "$ kubectl jobpolicy %s job/%s\n", strings.Join(args, " "), rec.Job.Name)
		args = append(args, "job/"+rec.Job.Name, "--kubeconfig", api.Kubeconfig, "-n", rec.Job.Namespace)
		if code := Run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: &out}); code != cli.ExitOK {
			fmt.Fprintf(&out, "(exit code %d)\n", code)
		}
		fmt.Fprintln(&out)
	}
	return out.String()
}
