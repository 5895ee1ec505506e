package kubeclient

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// While a list of everything is on its way, the lease is renewed over a connection of its
// own.
func TestTheLeaseHasAConnectionOfItsOwn(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]map[string]bool{} // connections by path
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.ProtoMajor != 2 {
			t.Errorf("%s over %s: two connections prove nothing", r.URL.Path, r.Proto)
		}
		if seen[r.URL.Path] == nil {
			seen[r.URL.Path] = map[string]bool{}
		}
		seen[r.URL.Path][r.RemoteAddr] = true
		w.WriteHeader(http.StatusNotFound)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	cfg := &rest.Config{Host: server.URL, QPS: 100, Burst: 100, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	client, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := NewForLease(cfg, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, _ = client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})               // is not found
		_, _ = client.BatchV1().Jobs("").List(t.Context(), metav1.ListOptions{})              // is not found
		_, _ = lease.CoordinationV1().Leases("ns").Get(t.Context(), "n", metav1.GetOptions{}) // is not found
	}
	pods, jobs, leases := seen["/api/v1/pods"], seen["/apis/batch/v1/jobs"], seen["/apis/coordination.k8s.io/v1/namespaces/ns/leases/n"]
	if len(pods) != 1 || len(jobs) != 1 || len(leases) != 1 {
		t.Fatalf("connections by path: %v; want one for each", seen)
	}
	for connection := range leases {
		if pods[connection] || jobs[connection] {
			t.Errorf("the lease is read over the connection of lists: %v", seen)
		}
	}
	if own, others := lease.CoordinationV1().RESTClient().GetRateLimiter(), client.BatchV1().RESTClient().GetRateLimiter(); own == others {
		t.Error("the lease has the rate limit of lists")
	}
}
