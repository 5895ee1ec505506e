package kubeclient

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

var owned = metav1.ObjectMeta{Name: "n", Namespace: "ns", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}

// startTyped serves one pod and one Job in protobuf, and a watch of the pod.
func startTyped(t *testing.T) *rest.Config {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: owned, Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"}}
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	encode := func(obj runtime.Object, gv runtime.GroupVersioner) []byte {
		data, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, gv), obj)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/namespaces/ns/pods/n", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		_, _ = w.Write(encode(pod, corev1.SchemeGroupVersion)) // the client went away
	})
	mux.HandleFunc("GET /api/v1/namespaces/ns/pods", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf+";stream=watch")
		event := &metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: encode(pod, corev1.SchemeGroupVersion)}}
		_ = info.StreamSerializer.Serializer.Encode(event, info.StreamSerializer.Framer.NewFrameWriter(w)) // the client went away
	})
	mux.HandleFunc("GET /apis/batch/v1/namespaces/ns/jobs/n", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		_, _ = w.Write(encode(&batchv1.Job{ObjectMeta: owned}, batchv1.SchemeGroupVersion)) // the client went away
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, QPS: 100, Burst: 100, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf}}
}

func TestClientDecodesOfPodsWhatIsKept(t *testing.T) {
	client, err := New(startTyped(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	read, err := client.CoreV1().Pods("ns").Get(ctx, "n", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watch, err := client.CoreV1().Pods("ns").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	watched, ok := (<-watch.ResultChan()).Object.(*corev1.Pod)
	if !ok {
		t.Fatal("no pod is watched")
	}
	for from, pod := range map[string]*corev1.Pod{"read": read, "watched": watched} {
		if pod.Name != "n" || pod.Status.Phase != corev1.PodRunning || pod.ManagedFields != nil || pod.Status.PodIP != "" {
			t.Errorf("%s: %v", from, pod)
		}
	}
	job, err := client.BatchV1().Jobs("ns").Get(ctx, "n", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(job.ManagedFields) != 1 {
		t.Errorf("the Job lost something: %v", job)
	}
}

func TestEventsHaveARateLimitOfTheirOwn(t *testing.T) {
	cfg := startTyped(t)
	client, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	events, err := NewForEvents(cfg)
	if err != nil {
		t.Fatal(err)
	}
	core, ok := events.(*typedcorev1.CoreV1Client)
	if !ok {
		t.Fatalf("%T, want a client of the core group", events)
	}
	others, own := client.BatchV1().RESTClient().GetRateLimiter(), core.RESTClient().GetRateLimiter()
	if own == nil || own == others || own.QPS() != others.QPS() {
		t.Errorf("events are limited by %v, Jobs by %v; want two limits of one size", own, others)
	}
}

func TestOneRateLimitForAllRequests(t *testing.T) {
	client, err := New(startTyped(t))
	if err != nil {
		t.Fatal(err)
	}
	pods, jobs := client.CoreV1().RESTClient().GetRateLimiter(), client.BatchV1().RESTClient().GetRateLimiter()
	if pods == nil || pods != jobs {
		t.Errorf("pods are limited by %v, Jobs by %v", pods, jobs)
	}
}
