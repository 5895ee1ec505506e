package job

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// startAPIServer starts an API server with etcd, as Kueue's specs do.
func startAPIServer(t *testing.T) client.Client {
	t.Helper()
	servers := &envtest.Environment{}
	config, err := servers.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := servers.Stop(); err != nil {
			t.Error(err)
		}
	})
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// makeJob makes a Job that MultiKueue manages.
func makeJob(t *testing.T, c client.Client, name string, status batchv1.JobStatus) *batchv1.Job {
	t.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: batchv1.JobSpec{
		ManagedBy: new(kueue.MultiKueueControllerName), Parallelism: new(int32(3)), Completions: new(int32(5)),
		CompletionMode: new(batchv1.IndexedCompletion), BackoffLimitPerIndex: new(int32(2)),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "none"}}}},
	}}
	if err := c.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	job.Status = status
	if err := c.Status().Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	return job
}

// A Job whose first worker cluster has counted pods moves to another one. Its status there begins from 0, which the API server
// of the manager refuses: the status of the local Job would stay that of the first cluster, also when the Job has ended.
func TestAJobThatMovesIsMirrored(t *testing.T) {
	local := startAPIServer(t)
	job := makeJob(t, local, "moves", batchv1.JobStatus{Failed: 4, Succeeded: 1, CompletedIndexes: "0"})
	there := job.DeepCopy()
	there.Status = batchv1.JobStatus{Active: 3, StartTime: at(2)}
	key := client.ObjectKeyFromObject(job)
	refused := job.DeepCopy()
	refused.Status = there.Status
	if err := local.Status().Update(t.Context(), refused); err == nil {
		t.Fatal("the API server accepts counters that decrease")
	}
	remote := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(there).Build()
	if _, err := (&multiKueueAdapter{}).SyncJob(t.Context(), local, remote, key, "workload", "origin"); err != nil {
		t.Fatal(err)
	}
	if err := local.Get(t.Context(), key, job); err != nil {
		t.Fatal(err)
	}
	want := batchv1.JobStatus{Active: 3, StartTime: at(2), Failed: 4, Succeeded: 1}
	if diff := cmp.Diff(want, job.Status); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Whatever the API server accepts is mirrored as it is, and what is mirrored otherwise is accepted: 500 drawn statuses.
func TestMirroredStatusesAreAccepted(t *testing.T) {
	c := startAPIServer(t)
	accepted, kept := 0, 0
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		job := makeJob(t, c, fmt.Sprintf("j%d", seed), drawStatus(r))
		remote := drawStatus(r)
		mirrored := mirroredStatus(t.Context(), job, &remote)
		asItIs := write(t, c, job, remote)
		if asItIs == nil {
			accepted++
		}
		same := cmp.Equal(&remote, mirrored)
		if asItIs == nil && !same {
			t.Errorf("seed %d: the API server accepts the status, but it is not mirrored as it is\n%s", seed, cmp.Diff(&remote, mirrored))
		}
		if same {
			continue
		}
		kept++
		if err := write(t, c, job, *mirrored); err != nil {
			t.Errorf("seed %d: what is mirrored is refused: %v", seed, err)
		}
	}
	if t.Logf("%d of 500 are accepted as they are, %d with counters kept", accepted, kept); accepted < 50 || kept < 50 {
		t.Error("want some of both")
	}
}

// write writes a status into a copy of a Job, without effect.
func write(t *testing.T, c client.Client, job *batchv1.Job, status batchv1.JobStatus) error {
	job = job.DeepCopy()
	job.Status = status
	return c.Status().Update(t.Context(), job, client.DryRunAll)
}

// drawStatus draws a status that a Job of makeJob may have.
func drawStatus(r *rand.Rand) batchv1.JobStatus {
	s := batchv1.JobStatus{Failed: int32(r.IntN(3)), Active: int32(r.IntN(3)), StartTime: at(r.IntN(2))}
	s.Ready = new(int32(r.IntN(int(s.Active) + 1)))
	s.CompletedIndexes = []string{"", "0", "0,2", "0-2"}[r.IntN(4)]
	s.Succeeded = map[string]int32{"0": 1, "0,2": 2, "0-2": 3}[s.CompletedIndexes]
	if r.IntN(2) == 0 {
		s.FailedIndexes = new([]string{"", "3", "3,4"}[r.IntN(3)])
	}
	yes := func(kind batchv1.JobConditionType) batchv1.JobCondition {
		return batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: *at(3)}
	}
	if r.IntN(4) == 0 {
		s.Active, s.Ready, s.CompletionTime = 0, nil, at(4)
		s.Conditions = []batchv1.JobCondition{yes(batchv1.JobSuccessCriteriaMet), yes(batchv1.JobComplete)}
	}
	return s
}

// at is a time in whole seconds.
func at(second int) *metav1.Time {
	return new(metav1.NewTime(time.Unix(1_700_000_000+int64(second), 0)))
}
