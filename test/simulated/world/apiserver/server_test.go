package apiserver

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/objects"
)

func clientOf(s *Server, by string, protobuf bool) kubernetes.Interface {
	config := &rest.Config{Host: "http://world", Transport: s.Transport(by), QPS: -1}
	if protobuf {
		config.ContentType = runtime.ContentTypeProtobuf
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	return kubernetes.NewForConfigOrDie(config)
}

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "image"}},
		},
	}
}

func newJob(name string) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	job.Spec.Template.Spec = newPod("").Spec
	return job
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

// inBubble runs a test in virtual time, over both media types.
func inBubble(t *testing.T, test func(t *testing.T, s *Server, client kubernetes.Interface)) {
	t.Helper()
	for name, protobuf := range map[string]bool{"json": false, "protobuf": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(Options{})
				test(t, s, clientOf(s, "test", protobuf))
			})
		})
	}
}

func TestJobLifecycle(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, client kubernetes.Interface) {
		jobs := client.BatchV1().Jobs("default")
		ctx := context.Background()
		job := objects.Create(t, jobs, newJob("a"))
		if job.UID == "" || job.Generation != 1 || job.Spec.Selector == nil || *job.Spec.BackoffLimit != 6 {
			t.Errorf("created %+v", job)
		}
		now := metav1.Now()
		job.Status.StartTime = &now
		job.Status.Active = 1
		job = objects.UpdateStatus(t, jobs, job)
		if job.Status.Active != 1 || job.Generation != 1 {
			t.Errorf("status %+v", job.Status)
		}
		job, err := jobs.Patch(ctx, "a", types.StrategicMergePatchType, []byte(`{"spec":{"parallelism":3}}`), metav1.PatchOptions{})
		must.Succeed(t, err)
		if *job.Spec.Parallelism != 3 || job.Generation != 2 {
			t.Errorf("patched %+v", job)
		}
		must.Succeed(t, jobs.Delete(ctx, "a", metav1.DeleteOptions{}))
		if got, _ := s.Get("jobs", key("a")); got == nil {
			t.Fatal("the Job is gone, though it was to orphan its pods first")
		}
		for s.CollectGarbage() {
		}
		if got, ok := s.Get("jobs", key("a")); ok {
			t.Fatalf("still there: %+v", got)
		}
	})
}

func TestWatchSeesWrites(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, client kubernetes.Interface) {
		ctx, cancel := context.WithCancel(context.Background())
		w, err := client.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{ResourceVersion: "1", TimeoutSeconds: new(int64(60))})
		must.Succeed(t, err)
		objects.Create(t, client.CoreV1().Pods("default"), newPod("a"))
		e := <-w.ResultChan()
		if e.Type != "ADDED" || e.Object.(*corev1.Pod).Name != "a" {
			t.Errorf("%+v", e)
		}
		time.Sleep(2 * time.Minute)
		if e, open := <-w.ResultChan(); open {
			t.Errorf("%+v", e)
		}
		w.Stop()
		cancel()
		synctest.Wait()
	})
}

func BenchmarkCreateGetStatusDelete(b *testing.B) {
	s := New(Options{})
	client := clientOf(s, "bench", true)
	ctx := context.Background()
	jobs := client.BatchV1().Jobs("default")
	for b.Loop() {
		job := objects.Create(b, jobs, newJob("a"))
		now := metav1.Now()
		job.Status.StartTime = &now
		objects.UpdateStatus(b, jobs, job)
		pods := client.CoreV1().Pods("default")
		objects.Create(b, pods, newPod("a"))
		must.Succeed(b, pods.Delete(ctx, "a", metav1.DeleteOptions{}))
		policy := metav1.DeletePropagationBackground
		must.Succeed(b, jobs.Delete(ctx, "a", metav1.DeleteOptions{PropagationPolicy: &policy}))
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		New(Options{})
	}
}

// BenchmarkWatchedStatus writes a pod's status, which three informers watch.
func BenchmarkWatchedStatus(b *testing.B) {
	s := New(Options{})
	client := clientOf(s, "bench", true)
	objects.Create(b, client.CoreV1().Pods("default"), newPod("a"))
	var watches []watch.Interface
	for range 3 {
		w, err := client.CoreV1().Pods("").Watch(b.Context(), metav1.ListOptions{ResourceVersion: "0", TimeoutSeconds: new(int64(3600))})
		must.Succeed(b, err)
		<-w.ResultChan()
		watches = append(watches, w)
	}
	for n := 0; b.Loop(); n++ {
		s.Update("kubelet", "pods", "status", key("a"), func(obj runtime.Object) { obj.(*corev1.Pod).Status.Message = strconv.Itoa(n) })
		for _, w := range watches {
			<-w.ResultChan()
		}
	}
	for _, w := range watches {
		w.Stop()
	}
}
