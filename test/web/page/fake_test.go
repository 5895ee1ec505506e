package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/deploy/local/freeport"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/executor"
	"jobpolicy.dev/test/kit/controlplane"
	"jobpolicy.dev/test/kit/executables"
)

// objects are what an API server in memory answers with. They never change, and every
// write is refused.
type objects struct {
	jobs  []any
	crons []any
	pods  []any
}

// startExecutor runs a real executor on these objects, and returns the base of its page.
func startExecutor(t *testing.T, o objects) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /apis/batch/v1/jobs", list("batch/v1", "Job", o.jobs))
	mux.HandleFunc("GET /apis/batch/v1/cronjobs", list("batch/v1", "CronJob", o.crons))
	mux.HandleFunc("GET /api/v1/pods", list("v1", "Pod", o.pods))
	mux.HandleFunc("GET /api/v1/namespaces", list("v1", "Namespace", nil))
	mux.HandleFunc("POST /api/v1/namespaces/{namespace}/pods", refusePod)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not here", http.StatusForbidden) })
	api := httptest.NewServer(mux)
	t.Cleanup(api.Close)
	t.Cleanup(api.CloseClientConnections)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c}}]\n", api.URL)
	must.Succeed(t, os.WriteFile(kubeconfig, []byte(text), 0o600))
	port := freeport.PortFor(t)
	cmd := exec.Command(filepath.Join(executables.MustDir(t), "jobpolicy-executor"), "--kubeconfig", kubeconfig, "--engine=embedded",
		"--leader-elect=false", "--http-address=127.0.0.1:"+port, "--kube-api-qps=1000", "--kube-api-burst=1000")
	cmd.Stderr = nil
	must.Succeed(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	url := "http://127.0.0.1:" + port
	controlplane.Eventually(t, "the executor is ready", func() (bool, string) {
		answer, err := http.Get(url + "/readyz")
		if err != nil {
			return false, err.Error()
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK, answer.Status
	})
	return url + "/debug/page/"
}

// quota is why the API server takes no pod.
const quota = "exceeded quota: small, requested: pods=1, used: pods=5, limited: pods=5"

// refusePod answers as an API server whose namespace has no room for a pod.
func refusePod(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: `pods "full-" is forbidden: ` + quota,
	})
}

// list answers lists, and watches that never end.
func list(version, kind string, items []any) http.HandlerFunc {
	meta := map[string]any{"resourceVersion": "1"}
	all, err := json.Marshal(map[string]any{"apiVersion": version, "kind": kind + "List", "metadata": meta, "items": append([]any{}, items...)})
	if err != nil {
		panic(err)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		query := r.URL.Query()
		if query.Get("watch") == "" {
			_, _ = w.Write(all)
			return
		}
		if query.Get("sendInitialEvents") == "true" {
			out := json.NewEncoder(w)
			for _, item := range items {
				_ = out.Encode(map[string]any{"type": "ADDED", "object": item})
			}
			_ = out.Encode(map[string]any{"type": "BOOKMARK", "object": map[string]any{
				"apiVersion": version, "kind": kind,
				"metadata": map[string]any{"resourceVersion": "1", "annotations": map[string]string{metav1.InitialEventsAnnotationKey: "true"}},
			}})
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

func uid(i int) types.UID { return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)) }

// newJob is a Job that the executor acts on.
func newJob(i int, namespace, name string, age time.Duration) *batchv1.Job {
	labels := map[string]string{"job": fmt.Sprint(i)}
	return &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: uid(i), ResourceVersion: "1", Generation: 1, CreationTimestamp: metav1.NewTime(time.Now().Add(-age)),
		},
		Spec: batchv1.JobSpec{
			Parallelism: new(int32(1)), Completions: new(int32(1)), BackoffLimit: new(int32(6)), Suspend: new(false),
			ManagedBy: new(executor.ManagedBy), CompletionMode: new(batchv1.NonIndexedCompletion), PodReplacementPolicy: new(batchv1.TerminatingOrFailed),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "i"}}},
			},
		},
	}
}

// end makes the Job a finished one.
func end(job *batchv1.Job, kind batchv1.JobConditionType, reason, message string, took time.Duration) {
	begin := job.CreationTimestamp.Time
	at := metav1.NewTime(begin.Add(took))
	interim := batchv1.JobSuccessCriteriaMet
	if kind == batchv1.JobFailed {
		interim, job.Status.Failed = batchv1.JobFailureTarget, 7
	} else {
		job.Status.Succeeded, job.Status.CompletionTime = *job.Spec.Completions, &at
	}
	job.Status.StartTime = &metav1.Time{Time: begin}
	for _, k := range []batchv1.JobConditionType{interim, kind} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: k, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: at, LastProbeTime: at,
		})
	}
}

// podOf is a pod of the Job. An index below 0 stands for none.
func podOf(job *batchv1.Job, i, index int, phase corev1.PodPhase) *corev1.Pod {
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: fmt.Sprintf("%s-%d", job.Name, i), UID: uid(1_000_000 + i), ResourceVersion: "1",
			Labels: job.Spec.Template.Labels, CreationTimestamp: job.CreationTimestamp,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: new(true)}},
		},
		Spec:   corev1.PodSpec{NodeName: "node"},
		Status: corev1.PodStatus{Phase: phase},
	}
	if index >= 0 {
		pod.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: fmt.Sprint(index)}
	}
	if phase == corev1.PodRunning {
		pod.Finalizers = []string{batchv1.JobTrackingFinalizer}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(pod.CreationTimestamp.Add(5 * time.Second))}}
	}
	return pod
}
