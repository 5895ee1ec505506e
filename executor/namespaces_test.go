package executor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// hanging is a client whose creations of pods in one namespace hang until their context
// ends.
type hanging struct {
	kubernetes.Interface
	namespace string

	mu      sync.Mutex
	created map[string]time.Time // by label job
}

// IsWatchListSemanticsUnSupported tells informers what the fake client does.
func (h *hanging) IsWatchListSemanticsUnSupported() bool { return true }

func (h *hanging) CoreV1() typedcorev1.CoreV1Interface {
	return hangingCore{h.Interface.CoreV1(), h}
}

type hangingCore struct {
	typedcorev1.CoreV1Interface
	client *hanging
}

func (c hangingCore) Pods(namespace string) typedcorev1.PodInterface {
	return hangingPods{c.CoreV1Interface.Pods(namespace), c.client, namespace}
}

type hangingPods struct {
	typedcorev1.PodInterface
	client    *hanging
	namespace string
}

func (p hangingPods) Create(ctx context.Context, pod *corev1.Pod, options metav1.CreateOptions) (*corev1.Pod, error) {
	if p.namespace == p.client.namespace {
		<-ctx.Done()
		return nil, errors.New("no answer")
	}
	p.client.mu.Lock()
	p.client.created[pod.Labels["job"]] = time.Now()
	p.client.mu.Unlock()
	return p.PodInterface.Create(ctx, pod, options)
}

// If a webhook hangs for the pods of one namespace with many Jobs, the Jobs of another
// namespace are not delayed.
func TestANamespaceThatHangsKeepsNoOtherWaiting(t *testing.T) {
	const hung, others = 300, 40
	job := func(namespace string, n int) *batchv1.Job {
		return testJob(func(j *batchv1.Job) {
			j.Namespace, j.Name, j.UID = namespace, fmt.Sprint("job-", n), testUID(n)
			labels := map[string]string{"job": fmt.Sprint(n)}
			j.Spec.Selector.MatchLabels, j.Spec.Template.Labels = labels, labels
		})
	}
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		client := &hanging{Interface: server, namespace: "hung", created: map[string]time.Time{}}
		cfg := testConfig(server, &script{Otherwise: creatingOnce})
		cfg.Client, cfg.APIBackoff, cfg.MaxAPIBackoff = client, time.Second, time.Minute
		start(t, cfg)
		create := func(namespace string, first, n int) {
			for i := range n {
				_, err := server.BatchV1().Jobs(namespace).Create(t.Context(), job(namespace, first+i), metav1.CreateOptions{})
				must(err)
				if i%50 == 49 {
					synctest.Wait() // The fake watch panics if nobody has read 100 events.
				}
			}
		}
		time.Sleep(time.Second)
		create("hung", 1, hung)
		time.Sleep(time.Second)
		begun := time.Now()
		create("other", hung+1, others)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		client.mu.Lock()
		if len(client.created) != others {
			t.Errorf("%d Jobs of another namespace have got a pod, want %d", len(client.created), others)
		}
		for name, at := range client.created {
			if took := at.Sub(begun); took > time.Second {
				t.Errorf("job %s waited %v for its pod", name, took)
			}
		}
		client.mu.Unlock()
	})
}

// With Namespaces, an executor asks about the Jobs in these only, and reads and writes
// nothing beyond them.
func TestOnlyTheNamespacesThatAreNamedAreWatched(t *testing.T) {
	job := func(namespace string, n int) *batchv1.Job {
		return testJob(func(j *batchv1.Job) { j.Namespace, j.UID = namespace, testUID(n) })
	}
	synctest.Test(t, func(t *testing.T) {
		s := newServer(job("one", 1), job("two", 2), job("three", 3))
		decider := &script{}
		cfg := testConfig(s, decider)
		cfg.Namespaces = []string{"one", "two"}
		e := start(t, cfg)
		time.Sleep(time.Minute)
		must(e.Ready())
		asked := map[string]bool{}
		for _, req := range decider.Requests() {
			asked[req.GetJob().GetNamespace()] = true
		}
		if want := map[string]bool{"one": true, "two": true}; !maps.Equal(asked, want) {
			t.Errorf("asked about Jobs in %v, want %v", asked, want)
		}
		for _, a := range s.Actions() {
			if a.GetNamespace() != "one" && a.GetNamespace() != "two" {
				t.Errorf("%s %s in namespace %q", a.GetVerb(), a.GetResource().Resource, a.GetNamespace())
			}
		}
	})
}
