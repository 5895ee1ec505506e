package plugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/services/internal/manifest"
	"jobpolicy.dev/services/internal/testenv"
)

// A recording is what a real API server showed of a Job at a moment:
// jobpolicy-local demo --record services/internal/plugin/testdata/recorded writes them.
type recording struct {
	Now    time.Time
	Job    *batchv1.Job
	Pods   []corev1.Pod
	Events []corev1.Event
	// Decisions is what the executor told of the Job. Nil: that was not recorded.
	Decisions []json.RawMessage
}

// Explain, timeline, wait, simulate and decisions say the same of the Jobs of the documents' manifests as when
// these were recorded, midway and at their end. Run with -rewrite after a change, and read
// the difference.
func TestRecordedJobs(t *testing.T) {
	files, err := filepath.Glob("testdata/recorded/*-*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			rec := read[recording](t, file)
			setNow(t, rec.Now)
			golden(t, strings.TrimSuffix(file, ".json")+".txt", tellAll(t, &rec))
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
		for _, file := range recordings {
			if rec := read[recording](t, file); rec.Decisions == nil {
				t.Errorf("%s does not say what the executor decided (jobpolicy-local demo --record)", file)
			}
		}
	}
}

// read reads a recording.
func read[T any](t *testing.T, file string) T {
	t.Helper()
	data := testenv.ReadFile(t, file)
	var rec T
	if err := json.Unmarshal(data, &rec); err != nil {
		t.Fatal(err)
	}
	return rec
}

// tellAll runs the commands about the recorded Job.
func tellAll(t *testing.T, rec *recording) string {
	t.Helper()
	rec.Job.APIVersion, rec.Job.Kind = "batch/v1", "Job"
	api := testenv.StartAPI(t, rec.Job)
	api.Pods, api.Events = rec.Pods, rec.Events
	var out bytes.Buffer
	for _, args := range [][]string{{"explain", "-o", "wide"}, {"timeline"}, {"wait", "--timeout", "1ms"}} {
		fmt.Fprintf(&out, "$ kubectl jobpolicy %s job/%s\n", strings.Join(args, " "), rec.Job.Name)
		fmt.Fprintln(&out, transcript(t, append(args, "job/"+rec.Job.Name, "--kubeconfig", api.Kubeconfig, "-n", rec.Job.Namespace)...))
	}
	fmt.Fprintf(&out, "$ kubectl jobpolicy simulate --from job/%s\n", rec.Job.Name)
	fmt.Fprintln(&out, transcript(t, "simulate", "--from", "job/"+rec.Job.Name, "--kubeconfig", api.Kubeconfig, "-n", rec.Job.Namespace))
	if rec.Decisions != nil {
		executor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(rec.Decisions) }))
		defer executor.Close()
		fmt.Fprintln(&out, "$ kubectl jobpolicy decisions")
		fmt.Fprintln(&out, transcript(t, "decisions", "--url", executor.URL))
	}
	return out.String()
}

// A clusterRecording is what API server and executor answered to commands that are about no
// single Job.
type clusterRecording struct {
	Now      time.Time
	Commands [][]string
	Answers  []answer
}

// An answer is that to one request, as "GET /path as user". Several to one request came in
// this order.
type answer struct {
	Request string
	Code    int
	Body    json.RawMessage
}

// Preflight looks at a whole cluster, decisions at what an executor has decided last: each
// has one golden output for all manifests of the documents, which run side by side. Those of
// the CronJob are here, too.
func TestRecordedCluster(t *testing.T) {
	rec := read[clusterRecording](t, "testdata/recorded/cluster.json")
	setNow(t, rec.Now)
	server := httptest.NewServer(replayed(t, rec.Answers))
	defer server.Close()
	t.Setenv("KUBECONFIG", os.DevNull)
	var out bytes.Buffer
	for _, command := range rec.Commands {
		fmt.Fprintf(&out, "$ kubectl jobpolicy %s\n", strings.Join(command, " "))
		args := append(slices.Clone(command), "--server", server.URL)
		if command[0] == "decisions" {
			args = append(args, "--url", server.URL)
		}
		fmt.Fprintln(&out, transcript(t, args...))
	}
	golden(t, "testdata/recorded/cluster.txt", out.String())
}

// The recorded cluster has the Jobs of all manifests, but for old: its Job is deleted so
// that new can take its pods over.
func TestEachExampleIsInTheRecordedCluster(t *testing.T) {
	manifests, err := filepath.Glob("../../../deploy/examples/*.yaml")
	if err != nil || len(manifests) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	listed := map[string]bool{}
	for _, a := range read[clusterRecording](t, "testdata/recorded/cluster.json").Answers {
		var list struct {
			Kind  string
			Items []struct{ Metadata struct{ Name string } }
		}
		if err := json.Unmarshal(a.Body, &list); err != nil || !strings.HasSuffix(list.Kind, "JobList") {
			continue
		}
		for _, item := range list.Items {
			listed[strings.TrimSuffix(list.Kind, "List")+" "+item.Metadata.Name] = true
		}
	}
	for _, file := range manifests {
		objects, err := manifest.ReadFile(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			name := "Job "
			if o.Job != nil {
				name += o.Job.Name
			} else {
				name = "CronJob " + o.CronJob.Name
			}
			if !listed[name] && filepath.Base(file) != "old.yaml" {
				t.Errorf("%s of %s is not in the recording (jobpolicy-local demo --record)", name, file)
			}
		}
	}
}

// replayed answers as recorded. The last answer to a request stands for all further ones.
func replayed(t *testing.T, answers []answer) http.HandlerFunc {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request) {
		line := r.Method + " " + r.URL.RequestURI()
		if as := r.Header.Get("Impersonate-User"); as != "" {
			line += " as " + as
		}
		mu.Lock()
		defer mu.Unlock()
		of := func(a answer) bool { return a.Request == line }
		i := slices.IndexFunc(answers, of)
		if i < 0 {
			t.Errorf("%s is not recorded", line)
			http.NotFound(w, r)
			return
		}
		found := answers[i]
		if slices.ContainsFunc(answers[i+1:], of) {
			answers = slices.Delete(answers, i, i+1)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(found.Code)
		_, _ = w.Write(found.Body)
	}
}
