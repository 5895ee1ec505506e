package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/test/kit/controlplane"
	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/kit/objects"
)

var labs atomic.Int32

// A lab is one test's namespace, with a proxy, an executor behind it, and an
// independent watch.
type lab struct {
	*testing.T
	namespace string
	proxy     *Proxy
	executor  *process
	started   []*process
	seen      *ledger.History
	flags     []string
	// builtIn: the built-in controllers take the executor's place, and nothing is expected of them.
	builtIn bool
	// wantCreated is the number of pods that are ever created for a Job.
	wantCreated map[types.UID]int
}

// newLab creates a namespace and an executor that is ready. When the test ends, the
// history must not break an invariant, the API server must not have refused a status as
// invalid, and the namespace must disappear.
func newLab(t *testing.T, flags ...string) *lab {
	t.Helper()
	return (&lab{T: t, flags: flags}).open()
}

func (l *lab) open() *lab {
	t := l.T
	t.Helper()
	l.namespace, l.wantCreated = fmt.Sprintf("faults-%d", labs.Add(1)), map[types.UID]int{}
	objects.Create(t, client.CoreV1().Namespaces(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.namespace}})
	var err error
	l.proxy = l.newProxy()
	if l.seen, err = ledger.Watch(client, l.namespace); err != nil {
		t.Fatalf("watch: %v", err)
	}
	t.Cleanup(func() {
		for _, x := range l.started {
			x.kill()
		}
	})
	t.Cleanup(l.close)
	l.executor = l.startExecutor(l.proxy)
	l.eventually("the executor is ready", l.executor.ready)
	return l
}

func (l *lab) newProxy() *Proxy {
	l.Helper()
	p, err := NewProxy(rights, l.namespace)
	if err != nil {
		l.Fatalf("proxy: %v", err)
	}
	l.Cleanup(p.Close)
	return p
}

// restart kills the executor, starts another, and waits until it is ready.
func (l *lab) restart() {
	l.Helper()
	l.executor.kill()
	l.executor = l.startExecutor(l.proxy)
	l.eventually("the next executor is ready", l.executor.ready)
}

// startExecutor starts an executor behind the proxy.
func (l *lab) startExecutor(p *Proxy) *process {
	l.Helper()
	var x *process
	if l.builtIn {
		x = startBuiltIn(l.T, p)
	} else {
		x = startProcess(l.T, p, l.flags)
	}
	l.started = append(l.started, x)
	return x
}

func (l *lab) close() {
	if l.builtIn {
		l.seen.Stop()
		return
	}
	l.deleteNamespace()
	l.executor.stop(l.T)
	l.eventually("all that was in the namespace is seen to go", func() (bool, string) { return l.seen.Empty(), "" })
	l.seen.Stop()
	for uid, want := range l.wantCreated {
		if n := l.seen.Pods(uid); n != want {
			l.Errorf("the Job had %d pods in its life, want %d", n, want)
		}
	}
	for _, problem := range l.seen.Problems() {
		l.Error(problem)
	}
	if n := l.refusals(); n > 0 {
		l.Errorf("the API server refused %d statuses as invalid", n)
	}
	if l.Failed() {
		l.Logf("the executor's log:\n%s", l.executor.log)
	}
}

// deleteNamespace simulates the node for the remaining pods, and waits until the
// namespace is gone. A pod with a finalizer would keep it.
func (l *lab) deleteNamespace() {
	ctx := context.Background()
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	l.seen.NamespaceGoes()
	if err := client.CoreV1().Namespaces().Delete(ctx, l.namespace, metav1.DeleteOptions{}); err != nil {
		l.Errorf("delete namespace: %v", err)
		return
	}
	deadline := time.Now().Add(patience)
	for {
		_ = client.CoreV1().Pods(l.namespace).DeleteCollection(ctx, now, metav1.ListOptions{}) // whatever is left is looked at below
		_, err := client.CoreV1().Namespaces().Get(ctx, l.namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return
		}
		if time.Now().After(deadline) {
			l.Errorf("the namespace is not gone: %v; left in it: %s", err, l.remains())
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// remains says what is left in the namespace.
func (l *lab) remains() string {
	var left []string
	jobs, jobsErr := client.BatchV1().Jobs(l.namespace).List(context.Background(), metav1.ListOptions{})
	pods, podsErr := client.CoreV1().Pods(l.namespace).List(context.Background(), metav1.ListOptions{})
	if err := errors.Join(jobsErr, podsErr); err != nil {
		return err.Error()
	}
	for _, j := range jobs.Items {
		left = append(left, fmt.Sprintf("Job %s (deleted %v, finalizers %v): %s", j.Name, j.DeletionTimestamp, j.Finalizers, describe(&j)))
	}
	for _, p := range pods.Items {
		left = append(left, fmt.Sprintf("pod %s (deleted %v, finalizers %v, owners %v): %s", p.Name, p.DeletionTimestamp, p.Finalizers, p.OwnerReferences, p.Status.Phase))
	}
	return strings.Join(left, "\n")
}

func (l *lab) eventually(what string, done func() (ok bool, state string)) {
	l.Helper()
	controlplane.Eventually(l.T, what, done)
}

// hits waits until a rule has applied to n calls.
func (l *lab) hits(r *Rule, n int) {
	l.Helper()
	l.eventually(fmt.Sprintf("%d calls that a rule decides on", n), func() (bool, string) { return r.Hits() >= n, fmt.Sprint(r.Hits()) })
}

// refusals is how many statuses the API server refused as invalid.
func (l *lab) refusals() int {
	n := 0
	for _, call := range l.proxy.Calls(Statuses) {
		if call.Code == http.StatusUnprocessableEntity {
			n++
		}
	}
	return n
}
