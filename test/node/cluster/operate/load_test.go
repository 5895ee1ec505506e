package operate

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/objects"
	"jobpolicy.dev/test/node/cluster/shared"
	"jobpolicy.dev/test/plane/migration"
)

const (
	// ours is the spec.managedBy of the Jobs that the executor acts on in any mode.
	ours = "jobpolicy.dev/executor"
	// shellImage has a shell; every cluster has it.
	shellImage = "busybox"
)

// loads counts the loads, whose namespaces live until the test ends.
var loads atomic.Int32

// newNamespace makes a namespace for a load. It stays: deleting it would delete
// Jobs that another look may be wanted at.
func newNamespace(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("load-%d", loads.Add(1))
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	objects.Create(t, shared.Client().CoreV1().Namespaces(), object)
	return name
}

// underWay is how many Jobs of a load may wait for something at once. The node starts
// their pods one after the other.
const underWay = 30

// startLoad creates Jobs of ours until finish is called, which waits for their
// end and checks every count.
func startLoad(t *testing.T, every time.Duration, unfinished int) (finish func(*testing.T)) {
	t.Helper()
	load, err := migration.StartLoad(context.Background(), shared.Client(), newNamespace(t), migration.LoadOptions{
		ManagedBy: new(ours), Image: shellImage, Every: every, Unfinished: unfinished,
	})
	must.Succeed(t, err)
	return func(t *testing.T) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		jobs, err := load.Finish(ctx)
		if err != nil {
			t.Errorf("of %d Jobs:\n%v", jobs, err)
			return
		}
		t.Logf("%d Jobs ran meanwhile, and each count is right", jobs)
	}
}

func sleep(t *testing.T, d time.Duration) {
	t.Helper()
	t.Logf("wait %s", d)
	select {
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	case <-time.After(d):
	}
}
