// Package failover checks that another executor goes on after the leading one was told to
// stop (SIGTERM) or was killed (SIGKILL), and measures how long nobody runs Jobs meanwhile,
// with many pods in the cluster.
package failover

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/freeport"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/executables"
	"jobpolicy.dev/test/kit/objects"
)

var (
	podsFlag   = flag.Int("failover.pods", 0, "how many pods there are; 0: measure nothing")
	coldFlag   = flag.Bool("failover.cold", true, "also measure standbys that are not warm")
	roundsFlag = flag.Int("failover.rounds", 3, "how often the leader is stopped, and how often it is killed")
)

const (
	manager    = "jobpolicy.dev/executor"
	podsPerJob = 1000
	creators   = 48
	patience   = 3 * time.Minute
	// probes is the namespace of the Jobs that are created right after a signal, and lead
	// the time between the two.
	probes = "probes"
	lead   = 100 * time.Millisecond
)

// TestFailover prints how long each failover took. A failover is from the signal until the next leader has created the pod of a Job that was
// created right after the signal.
func TestFailover(t *testing.T) {
	if *podsFlag == 0 {
		t.Skip("a measurement: make bench-failover")
	}
	m := newMeasurement(t, startPlane(t))
	m.fill(*podsFlag)
	for _, warm := range []bool{true, false} {
		if !warm && !*coldFlag {
			continue
		}
		m.leader, m.standby = m.start(warm), nil
		m.leads(m.leader)
		m.settled()
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			for range *roundsFlag {
				m.standby = m.start(warm)
				m.standsBy(m.standby, warm)
				before := m.standby.memory(t)
				took := m.failover(signal)
				t.Logf("warm %t, %s: %.2f s; resident before: leader %.0f MiB, standby %.0f MiB; the new leader now %.0f MiB",
					warm, signal, took.Seconds(), m.was, before, m.leader.memory(t))
			}
		}
		m.leader.end(t, syscall.SIGTERM)
	}
}

type measurement struct {
	t               *testing.T
	plane           *cluster.Cluster
	client          kubernetes.Interface
	leader, standby *replica
	was             float64 // memory of the leader before it was stopped
	probes          int
}

// startPlane starts an API server in which nothing but what a test starts runs Jobs.
func startPlane(t *testing.T, apiServerArgs ...string) *cluster.Cluster {
	t.Helper()
	plane, err := cluster.Start(t.Context(), cluster.Options{
		StateDir: t.TempDir(), BinDir: executables.MustDir(t), WithoutExecutor: true, WithoutNode: true, WithoutScheduler: true,
		ControllerManagerControllers: "serviceaccount-controller",
		ExtraArgs: map[string][]string{
			cluster.Etcd: {"--quota-backend-bytes=8589934592"},
			cluster.APIServer: append([]string{
				"--disable-admission-plugins=ServiceAccount", "--max-requests-inflight=800", "--max-mutating-requests-inflight=400",
			}, apiServerArgs...),
		},
	})
	must.Succeed(t, err)
	t.Cleanup(func() { _ = plane.Stop(context.Background()) })
	return plane
}

func newMeasurement(t *testing.T, plane *cluster.Cluster) *measurement {
	t.Helper()
	m := &measurement{t: t, plane: plane, client: newClient(plane)}
	m.namespace(probes)
	return m
}

func newClient(plane *cluster.Cluster) kubernetes.Interface {
	config := plane.RESTConfig()
	config.ContentType, config.QPS = runtime.ContentTypeProtobuf, -1
	return kubernetes.NewForConfigOrDie(config)
}

func (m *measurement) namespace(name string) {
	m.t.Helper()
	objects.Create(m.t, m.client.CoreV1().Namespaces(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// job is a Job that runs n pods until they are deleted.
func job(name string, n int32) *batchv1.Job {
	by := manager
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			Parallelism: &n, Completions: &n, ManagedBy: &by,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "none", Command: []string{"sleep", "infinity"}}},
			}},
		},
	}
}

// fill creates Jobs, and the pods that their controller would create.
func (m *measurement) fill(pods int) {
	m.t.Helper()
	began := time.Now()
	group, ctx := errgroup.WithContext(m.t.Context())
	group.SetLimit(creators)
	for i := range pods / podsPerJob {
		created := objects.Create(m.t, m.client.BatchV1().Jobs("default"), job(fmt.Sprintf("job-%d", i), podsPerJob))
		for range podsPerJob {
			group.Go(func() error {
				_, err := m.client.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{
						GenerateName: created.Name + "-", Labels: created.Spec.Template.Labels, Finalizers: []string{batchv1.JobTrackingFinalizer},
						OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(created, batchv1.SchemeGroupVersion.WithKind("Job"))},
					},
					Spec: created.Spec.Template.Spec,
				}, metav1.CreateOptions{})
				return err
			})
		}
	}
	must.Succeed(m.t, group.Wait())
	m.t.Logf("%d pods created in %s", pods, time.Since(began).Round(time.Second))
}

// settled waits until every Job's status counts its pods.
func (m *measurement) settled() {
	m.t.Helper()
	m.await("every Job counts its pods", func() bool {
		jobs, err := m.client.BatchV1().Jobs("default").List(m.t.Context(), metav1.ListOptions{})
		return err == nil && !slices.ContainsFunc(jobs.Items, func(j batchv1.Job) bool { return j.Status.Active != *j.Spec.Parallelism })
	})
}

// failover ends the leader, and measures until the standby acts.
func (m *measurement) failover(signal syscall.Signal) time.Duration {
	m.t.Helper()
	m.was = m.leader.memory(m.t)
	m.probes++
	name := fmt.Sprintf("probe-%d", m.probes)
	began := time.Now()
	must.Succeed(m.t, m.leader.cmd.Process.Signal(signal))
	time.Sleep(lead) // A replica that was told to end reconciles what it has seen before.
	objects.Create(m.t, m.client.BatchV1().Jobs(probes), job(name, 1))
	m.await("the next leader creates a pod", func() bool {
		pods, err := m.client.CoreV1().Pods(probes).List(m.t.Context(), metav1.ListOptions{})
		return err == nil && len(pods.Items) == m.probes
	})
	took := time.Since(began)
	_ = m.leader.cmd.Wait() // It was told to end.
	m.leader, m.standby = m.standby, nil
	return took
}

// await waits for a state.
func (m *measurement) await(what string, reached func() bool) {
	m.t.Helper()
	for deadline := time.Now().Add(patience); !reached(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			m.t.Fatalf("not reached after %s: %s", patience, what)
		}
	}
}

// A replica is an executor.
type replica struct {
	cmd *exec.Cmd
	url string
	log string
}

func (m *measurement) start(warm bool) *replica {
	m.t.Helper()
	return m.startAs(m.plane.Kubeconfig(), "--kube-api-qps=500", "--kube-api-burst=500", fmt.Sprintf("--warm-standby=%t", warm))
}

// startAs starts an executor for the user of a kubeconfig.
func (m *measurement) startAs(kubeconfig string, args ...string) *replica {
	m.t.Helper()
	address := freeport.AddressFor(m.t)
	r := &replica{url: "http://" + address, log: filepath.Join(m.t.TempDir(), "log")}
	file, err := os.Create(r.log)
	must.Succeed(m.t, err)
	defer file.Close()
	args = append([]string{"--engine=embedded", "--kubeconfig=" + kubeconfig, "--http-address=" + address}, args...)
	r.cmd = exec.Command(filepath.Join(executables.MustDir(m.t), "jobpolicy-executor"), args...)
	r.cmd.Stderr = file
	must.Succeed(m.t, r.cmd.Start())
	m.t.Cleanup(func() { _ = r.cmd.Process.Kill() }) // It has ended unless the test failed.
	return r
}

func (m *measurement) leads(r *replica) {
	m.t.Helper()
	m.await("the replica leads", func() bool {
		response, err := http.Get(r.url + "/readyz")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK && r.logged("controller started")
	})
}

// standsBy waits until the replica is as ready as it gets without leading.
func (m *measurement) standsBy(r *replica, warm bool) {
	m.t.Helper()
	m.await("the replica stands by", func() bool {
		return r.logged("leader elected") && (!warm || r.logged("pod cache filled while standing by"))
	})
	time.Sleep(3 * time.Second) // What it took to get there is over.
}

func (r *replica) logged(message string) bool {
	text, err := os.ReadFile(r.log)
	return err == nil && strings.Contains(string(text), message)
}

func (r *replica) end(t *testing.T, signal syscall.Signal) {
	t.Helper()
	must.Succeed(t, r.cmd.Process.Signal(signal))
	_ = r.cmd.Wait()
}

// memory is the resident size in MiB.
func (r *replica) memory(t *testing.T) float64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
	must.Succeed(t, err)
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}
