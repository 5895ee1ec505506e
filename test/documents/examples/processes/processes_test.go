package main

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jobpolicy.dev/deploy/local/freeport"
	"jobpolicy.dev/test/kit/certificates"
	"jobpolicy.dev/test/kit/executables"
)

// The test binary is the program, too.
func TestMain(m *testing.M) {
	if os.Getenv("PROCESSES_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestJobs(t *testing.T) {
	w := newWorkshop(t)
	cases := map[string]struct {
		job     string
		outcome string
		want    map[string]int // Of the status.
		runs    string         // What the processes have written, sorted.
	}{
		"each index once": {
			job: `{"command": ["sh", "-c", "echo $INDEX >> runs"],
			       "spec": {"completionMode": "COMPLETION_MODE_INDEXED", "parallelism": 2, "completions": 3}}`,
			outcome: "Complete", want: map[string]int{"succeeded": 3, "failed": 0}, runs: "0 1 2",
		},
		"a failed task is tried again": {
			job: `{"command": ["sh", "-c", "echo $TASK >> runs; [ $TASK != task-0 ]"],
			       "spec": {"parallelism": 1, "completions": 1, "backoffLimit": 1}}`,
			outcome: "Complete", want: map[string]int{"succeeded": 1, "failed": 1}, runs: "task-0 task-1",
		},
		"an exit code that ends the Job": {
			job: `{"command": ["sh", "-c", "[ $TASK = task-0 ] && exit 42; exec sleep 1000"],
			       "spec": {"parallelism": 3, "completions": 3, "backoffLimit": 6, "podFailurePolicy": {"rules": [
			         {"action": "POD_FAILURE_POLICY_ACTION_FAIL_JOB", "onExitCodes": {"operator": "EXIT_CODE_OPERATOR_IN", "values": [42]}}]}}}`,
			outcome: "Failed", want: map[string]int{"succeeded": 0, "failed": 3},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "job.json"), tc.job)
			out, err := w.program(t, dir).CombinedOutput()
			if err != nil || !strings.HasSuffix(string(out), "the Job is "+tc.outcome+"\n") {
				t.Fatalf("%v, printed:\n%s", err, out)
			}
			checkStatus(t, dir, tc.want)
			if got := strings.Join(lines(t, dir), " "); got != tc.runs {
				t.Errorf("the processes wrote %q, want %q; the program printed:\n%s", got, tc.runs, out)
			}
		})
	}
}

// A program that is killed takes its processes with it, and counts each once when it
// comes again.
func TestKilled(t *testing.T) {
	w, dir := newWorkshop(t), t.TempDir()
	write(t, filepath.Join(dir, "job.json"), `{"command": ["sh", "-c", "echo $TASK >> runs; [ -e go ] || exec sleep 1000"],
		"spec": {"parallelism": 2, "completions": 2, "backoffLimit": 2}}`)
	first := w.program(t, dir)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); len(lines(t, dir)) < 2; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no two processes run")
		}
	}
	_ = first.Process.Kill()
	_ = first.Wait()
	var before, file struct {
		UID   string
		Tasks map[string]task
	}
	read(t, filepath.Join(dir, "job.json"), &before)
	write(t, filepath.Join(dir, "go"), "")
	if out, err := w.program(t, dir).CombinedOutput(); err != nil || !strings.HasSuffix(string(out), "the Job is Complete\n") {
		t.Fatalf("%v, printed:\n%s", err, out)
	}
	read(t, filepath.Join(dir, "job.json"), &file)
	if len(file.UID) < 20 || file.UID != before.UID {
		t.Errorf("the UID is %q, was %q; want the same long one", file.UID, before.UID)
	}
	var ended, lost int
	for name, task := range file.Tasks {
		if task.Tracked {
			t.Errorf("%s is not accounted for", name)
		}
		ended++
		if task.ExitCode == noExitCode {
			lost++
		}
	}
	checkStatus(t, dir, map[string]int{"succeeded": 2, "failed": lost})
	if ended != 2+lost {
		t.Errorf("%d tasks, want 2 and the %d that were killed", ended, lost)
	}
}

// A workshop has an engine, and certificates for its callers.
type workshop struct{ engine, certificates string }

func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	dir := certificates.Folder(t)
	port := freeport.PortFor(t)
	w := &workshop{engine: net.JoinHostPort("localhost", port), certificates: dir}
	engine := exec.Command(filepath.Join(executables.MustDir(t), "jobpolicy-engine"), "--grpc-address="+w.engine, "--http-address=",
		"--tls-cert-file=tls.crt", "--tls-private-key-file=tls.key", "--client-ca-file=ca.crt")
	engine.Dir = dir
	if err := engine.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = engine.Process.Kill()
		_ = engine.Wait()
	})
	return w
}

// program is the example, in a folder that has a job.json.
func (w *workshop) program(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--engine=dns:///"+w.engine, "--certificates="+w.certificates)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PROCESSES_MAIN=1")
	return cmd
}

func checkStatus(t *testing.T, dir string, want map[string]int) {
	t.Helper()
	var file struct{ Status map[string]any }
	read(t, filepath.Join(dir, "job.json"), &file)
	for field, n := range want {
		if got, _ := file.Status[field].(float64); int(got) != n {
			t.Errorf("status.%s is %v, want %d", field, file.Status[field], n)
		}
	}
}

// lines are those that the processes have written, sorted.
func lines(t *testing.T, dir string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "runs"))
	if err != nil {
		return nil
	}
	all := strings.Fields(string(data))
	slices.Sort(all)
	return all
}

func read(t *testing.T, file string, to any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
