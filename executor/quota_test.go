package executor

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"jobpolicy.dev/executor/wire"
)

// quotaTries runs a Job with options whose pods the API server refuses, and returns the delays between the
// tries. After so many tries, edit changes the options.
func quotaTries(t *testing.T, options string, refusal error, after int, edit string) (delays []time.Duration) {
	t.Helper()
	server := newServer(testJob(func(job *batchv1.Job) { job.Annotations = map[string]string{wire.Policy: options} }))
	var last time.Time
	var tries atomic.Int64
	server.Failures["create pods"] = func(n int) error {
		if n > 1 {
			delays = append(delays, time.Since(last).Round(time.Second))
		}
		last = time.Now()
		tries.Store(int64(n))
		return refusal
	}
	cfg := testConfig(server, &script{Otherwise: wantingOne})
	cfg.APIBackoff, cfg.MaxAPIBackoff = time.Second, time.Minute
	inBubble(t, cfg, nil, func(t *testing.T, _ *Executor) {
		if edit != "" {
			for int(tries.Load()) < after {
				time.Sleep(time.Second / 2)
				synctest.Wait()
			}
			job, err := server.BatchV1().Jobs("ns").Get(t.Context(), "job", metav1.GetOptions{})
			must(err)
			job.Annotations[wire.Policy], job.ResourceVersion = edit, "9"
			_, err = server.BatchV1().Jobs("ns").Update(t.Context(), job, metav1.UpdateOptions{})
			must(err)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
	})
	return delays
}

// A Job's options shorten the delay after a quota refused its pods (kubernetes/kubernetes#114651), and no other
// delay. A change acts on the next refusal.
func TestTheDelayAfterAQuotaRefusedPods(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	quota := apierrors.NewForbidden(pods, "", errors.New("exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"))
	const s = time.Second
	usual := []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s}
	for name, tc := range map[string]struct {
		options string
		refusal error
		after   int
		edit    string
		want    []time.Duration
	}{
		"no such option":                {options: "{job: {retryDelay: {maxSeconds: 3}}}", refusal: quota, want: usual},
		"5 seconds":                     {options: "{job: {retryDelay: {quotaMaxSeconds: 5}}}", refusal: quota, want: []time.Duration{s, 2 * s, 4 * s, 5 * s, 5 * s, 5 * s, 5 * s}},
		"more than the usual delay":     {options: "{job: {retryDelay: {quotaMaxSeconds: 600}}}", refusal: quota, want: usual},
		"it is set while pods wait":     {options: "{}", refusal: quota, after: 4, edit: "{job: {retryDelay: {quotaMaxSeconds: 3}}}", want: []time.Duration{s, 2 * s, 4 * s, 8 * s, 3 * s, 3 * s, 3 * s}},
		"it is removed while pods wait": {options: "{job: {retryDelay: {quotaMaxSeconds: 2}}}", refusal: quota, after: 4, edit: "{}", want: []time.Duration{s, 2 * s, 2 * s, 2 * s, 16 * s, 32 * s, 60 * s}},
		"a webhook refuses": {
			options: "{job: {retryDelay: {quotaMaxSeconds: 5}}}", refusal: apierrors.NewForbidden(pods, "", errors.New("admission webhook denied it")), want: usual,
		},
		"a quota of requests that the pods lack": {
			options: "{job: {retryDelay: {quotaMaxSeconds: 5}}}", refusal: apierrors.NewForbidden(pods, "", errors.New("failed quota: q: must specify limits.cpu")), want: usual,
		},
	} {
		t.Run(name, func(t *testing.T) {
			delays := quotaTries(t, tc.options, tc.refusal, tc.after, tc.edit)
			if len(delays) < len(tc.want) {
				t.Fatalf("delays between tries: %v, want %v", delays, tc.want)
			}
			if diff := cmp.Diff(tc.want, delays[:len(tc.want)]); diff != "" {
				t.Errorf("delays between tries (-want +got):\n%s", diff)
			}
		})
	}
}
