package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/freeport"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/executables"
)

// A second executor in coexist mode, with the engine in its own process, runs the Jobs
// that name it, with the same result, and leaves all others to the first.
func TestCoexistWithAnEmbeddedEngine(t *testing.T) {
	t.Parallel()
	const manager = "example.com/second"
	second := startExecutor(t, "--engine=embedded", "--managed-by="+manager, "--leader-elect=false", "--pod-failure-backoff=1s")
	eventually(t, "the second executor is ready", second.ready)
	namespace := newNamespace(t)
	template := shell(`test "$JOB_COMPLETION_INDEX" != 2`, corev1.RestartPolicyNever)
	spec := batchv1.JobSpec{
		Completions: new(int32(4)), Parallelism: new(int32(2)), CompletionMode: new(batchv1.IndexedCompletion),
		BackoffLimit: new(int32(1)), Template: template,
	}
	createJob(t, namespace, "first", spec)
	spec.ManagedBy = new(manager)
	createJob(t, namespace, "second", spec)
	one, other := waitFinished(t, namespace, "first"), waitFinished(t, namespace, "second")
	// How many other indexes had ended when index 2 failed twice depends on timing; the
	// verdict does not.
	if diff := cmp.Diff(endOf(one).Failed, endOf(other).Failed); diff != "" || endOf(one).Failed != "BackoffLimitExceeded" {
		t.Errorf("the two Jobs ended differently: %s; %s", describe(one), describe(other))
	}
	second.waitFinishedJobs(t, 1) // only its own
}

// Two executors elect a leader, and only the leader acts. If it is killed in the middle
// of a Job, the other takes over.
func TestTheStandbyTakesOver(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"cold": nil, "warm": {"--warm-standby"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			standbyTakesOver(t, name, args...)
		})
	}
}

func standbyTakesOver(t *testing.T, name string, extra ...string) {
	t.Helper()
	manager := "example.com/elected-" + name
	args := append([]string{
		"--engine=embedded", "--managed-by=" + manager, "--leader-elect", "--leader-elect-resource-namespace=default",
		"--leader-elect-resource-name=e2e-elected-" + name, "--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s",
		"--leader-elect-retry-period=1s",
	}, extra...)
	leader := startExecutor(t, args...)
	eventually(t, "the first executor leads", leader.ready)
	standby := startExecutor(t, args...)
	eventually(t, "the second executor stands by", func() (bool, string) {
		_, why := standby.ready()
		return strings.Contains(why, "standing by"), why
	})
	namespace := newNamespace(t)
	createJob(t, namespace, "handed-over", batchv1.JobSpec{
		ManagedBy: new(manager), Completions: new(int32(12)), Parallelism: new(int32(2)),
		Template: shell("sleep 0.5", corev1.RestartPolicyNever),
	})
	waitJob(t, namespace, "handed-over", "some pods are done", func(job *batchv1.Job) bool { return job.Status.Succeeded >= 2 })
	leader.kill()
	job := waitFinished(t, namespace, "handed-over")
	if n := standby.metric(t, "jobpolicy_second_controller_writes_total"); n != 0 {
		t.Errorf("the standby took the leader before it for another controller, %v times", n)
	}
	if pods := jobPods(t, job); len(pods) != 12 || job.Status.Succeeded != 12 {
		t.Errorf("%d pods were made for 12 completions: %s", len(pods), describe(job))
	}
	standby.waitFinishedJobs(t, 1)
}

// An executorProcess is an additional executor, beside that of the control plane.
type executorProcess struct {
	url    string
	cmd    *exec.Cmd
	killed bool
}

// startExecutor starts an executor, and stops it with SIGTERM when the test ends.
func startExecutor(t *testing.T, args ...string) *executorProcess {
	t.Helper()
	return startExecutorOn(t, plane, args...)
}

// startExecutorOn is startExecutor for the test's own control plane.
func startExecutorOn(t *testing.T, plane *cluster.Cluster, args ...string) *executorProcess {
	t.Helper()
	return startExecutorAs(t, plane.Kubeconfig(), args...)
}

// startExecutorAs is startExecutor for the user of a kubeconfig.
func startExecutorAs(t *testing.T, kubeconfig string, args ...string) *executorProcess {
	t.Helper()
	address := freeport.AddressFor(t)
	args = append(args, "--kubeconfig="+kubeconfig, "--http-address="+address)
	p := &executorProcess{url: "http://" + address, cmd: exec.Command(filepath.Join(executables.MustDir(t), "jobpolicy-executor"), args...)}
	p.cmd.Stderr = testLog{t}
	must.Succeed(t, p.cmd.Start())
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		if err := p.cmd.Wait(); err != nil && !p.killed {
			t.Errorf("the executor ended with: %v", err)
		}
	})
	return p
}

func (p *executorProcess) kill() {
	p.killed = true
	_ = p.cmd.Process.Kill() // it may have ended
}

// ready returns the answer of /readyz.
func (p *executorProcess) ready() (bool, string) {
	code, body := get(p.url + "/readyz")
	return code == http.StatusOK, body
}

// metric returns the sum of the samples of a metric.
func (p *executorProcess) metric(t *testing.T, name string) float64 {
	t.Helper()
	code, body := get(p.url + "/metrics")
	if code != http.StatusOK {
		t.Fatalf("metrics: %s", body)
	}
	sum := 0.0
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, name+"{") && !strings.HasPrefix(line, name+" ") {
			continue
		}
		fields := strings.Fields(line)
		value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			t.Fatalf("metric %q: %v", line, err)
		}
		sum += value
	}
	return sum
}

// waitFinishedJobs waits until the executor has counted n finished Jobs. It counts a Job
// after the API server has answered the write of its status.
func (p *executorProcess) waitFinishedJobs(t *testing.T, n float64) {
	t.Helper()
	eventually(t, fmt.Sprintf("the executor has finished %v Jobs", n), func() (bool, string) {
		have := p.metric(t, "job_controller_jobs_finished_total")
		return have == n, fmt.Sprint(have)
	})
}

// get returns the status code, 0 if there is no answer, and the body or error.
func get(url string) (int, string) {
	response, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(body)
}

// A testLog passes a process's log on to the test's.
type testLog struct{ t *testing.T }

func (l testLog) Write(lines []byte) (int, error) {
	l.t.Logf("%s", bytes.TrimSpace(lines))
	return len(lines), nil
}
