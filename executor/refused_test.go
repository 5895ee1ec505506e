package executor

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A policy forbids to patch one pod. That pod is tried again after a delay that doubles, 1 s
// to 1 min. Another pod that ends meanwhile is released at once, and not when the delay is
// over.
func TestARefusedReleaseDelaysNoOtherPod(t *testing.T) {
	resource := schema.GroupResource{Resource: "pods"}
	unchanged := func(*batchv1.Job) {}
	for name, tc := range map[string]struct {
		pod     func(*corev1.Pod)
		job     func(*batchv1.Job)
		refusal error
	}{
		"forbidden":                     {failedPhase, unchanged, apierrors.NewForbidden(resource, "pod-2", errors.New("policy says no"))},
		"invalid":                       {failedPhase, unchanged, apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "pod-2 because policy says no", nil)},
		"the Job does not match it":     {stray, unchanged, apierrors.NewForbidden(resource, "pod-2", errors.New("policy says no"))},
		"nor match it while it deletes": {stray, keptWhileDeleted, apierrors.NewForbidden(resource, "pod-2", errors.New("policy says no"))},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer(testJob(tc.job), testPod(2, tc.pod), testPod(4, failedPhase))
			tries := server.onPatch(func(string) (runtime.Object, error) { return nil, tc.refusal }, "pod-2")
			cfg := testConfig(server, &script{Otherwise: releasing(false)})
			cfg.APIBackoff, cfg.MaxAPIBackoff = time.Second, time.Minute
			var log bytes.Buffer
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			inBubble(t, cfg, nil, func(t *testing.T, _ *Executor) {
				time.Sleep(2*time.Minute + 10*time.Second) // The delay of the refused pod is over in about 50 s.
				synctest.Wait()
				before := tries("pod-2")
				if n := tries("pod-4"); n != 1 {
					t.Errorf("the pod beside it was released %d times, want once", n)
				}
				if _, err := server.CoreV1().Pods("ns").Create(context.Background(), testPod(3, failedPhase), metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if n := tries("pod-3"); n != 1 {
					t.Errorf("the other pod was released %d times, want once", n)
				}
				if n := tries("pod-2"); n != before || n < 5 || n > 9 {
					t.Errorf("the refused pod was tried %d times, and %d times after that, want 5 to 9 and 0", before, n-before)
				}
			})
			if !strings.Contains(log.String(), "policy says no") {
				t.Errorf("the log does not say why: %s", &log)
			}
		})
	}
}
