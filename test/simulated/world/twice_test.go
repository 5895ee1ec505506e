package world

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	otelattribute "go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"jobpolicy.dev/deploy/local/must"
)

// sampled are the seeds that TestASeedGivesTheSameHistoryTwice plays: from the first one to before the second. Those
// above 100 once had two histories: 279 and 309 because of lists in the order of a map, 107 and 372 because of UIDs in such
// an order, 389 because of reconciles that began at the same instant. docs/worlds.md says why some other seeds may have two.
var sampled = [][2]uint64{{1, 3}, {4, 22}, {107, 108}, {279, 280}, {309, 310}, {372, 373}, {389, 390}}

// TestASeedGivesTheSameHistoryTwice plays some worlds in two processes, in opposite orders, and compares the logs
// of writes byte for byte.
func TestASeedGivesTheSameHistoryTwice(t *testing.T) {
	prepare()
	twice, all := sameness{}, 0
	for _, seeds := range sampled {
		all += int(seeds[1] - seeds[0])
		for _, down := range []bool{false, true} {
			pool := workerPool{
				binary: os.Args[0], args: []string{"-world.twice"}, workers: 1,
				seeds: &seedRange{next: seeds[0], end: seeds[1], down: down}, tell: twice.add,
			}
			must.Succeed(t, pool.play(t))
		}
	}
	if twice.all != all || twice.same != all {
		t.Errorf("%d of %d worlds were played twice. %s", twice.all, all, twice)
	}
}

// Reconciles of different objects that are due at the same instant begin one after the other, in an order that follows
// from the seed and not from who came first or why.
func TestReconcilesOfOneInstantBeginInOneOrder(t *testing.T) {
	order := func(seed uint64, uids []string) (began []string) {
		synctest.Test(t, func(t *testing.T) {
			tracer, due := newSettler(seed).Tracer(""), time.Now()
			var mu sync.Mutex
			var all sync.WaitGroup
			for n, uid := range uids {
				all.Go(func() {
					tracer.Start(t.Context(), "reconcile", trace.WithNewRoot(), trace.WithAttributes(otelattribute.String(attrCause, fmt.Sprint(n)), otelattribute.String("uid", uid)))
					mu.Lock()
					defer mu.Unlock()
					if waited, want := time.Since(due), settledAfter+time.Duration(len(began))*burstGap; waited != want {
						t.Errorf("reconcile %d waits %v, want %v", len(began), waited, want)
					}
					began = append(began, uid)
				})
			}
			all.Wait()
		})
		return began
	}
	uids := []string{"a", "b", "c", "d", "e", "f"}
	first := order(1, uids)
	slices.Reverse(uids)
	if diff := cmp.Diff(first, order(1, uids)); diff != "" {
		t.Errorf("the order follows from who comes first (-first +again):\n%s", diff)
	}
	if slices.Equal(first, order(2, uids)) {
		t.Errorf("two seeds have one order: %v", first)
	}
}

func TestUncountedPodsOfTheSecondControllerAreSorted(t *testing.T) {
	coder := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	write := func(uncounted *batchv1.UncountedTerminatedPods) []byte {
		var body bytes.Buffer
		job := &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: batchv1.JobStatus{UncountedTerminatedPods: uncounted}}
		must.Succeed(t, coder.Encode(job, &body))
		return body.Bytes()
	}
	cases := map[string]struct {
		sent, want *batchv1.UncountedTerminatedPods
	}{
		"none": {nil, nil},
		"some": {
			&batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"b", "a", "c"}, Failed: []types.UID{"z", "y"}},
			&batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"a", "b", "c"}, Failed: []types.UID{"y", "z"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := sortUncounted(write(tc.sent))
			if diff := cmp.Diff(write(tc.want), got); diff != "" || err != nil {
				t.Errorf("error %v, body (-want +got):\n%s", err, diff)
			}
		})
	}
	if _, err := sortUncounted([]byte("no Job")); err == nil {
		t.Error("what is no Job gives no error")
	}
}

// What is due at the same instant happens in the order in which it was planned.
func TestOneInstantHasAnOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{agenda: map[int64][]func(){}}
		var done []int
		for n := range 20 {
			w.after(time.Second, func() { done = append(done, n) })
		}
		time.Sleep(2 * time.Second)
		if len(done) != 20 || !slices.IsSorted(done) {
			t.Errorf("the order is %v", done)
		}
	})
}
