package kubeclient

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Every client's requests count, each with its code.
func TestRequestsAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	if err := RegisterMetrics(registry); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(server.Close)
	cfg := &rest.Config{Host: server.URL, QPS: 100, Burst: 100}
	client, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	events, err := NewForEvents(cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, jobsErr := client.BatchV1().Jobs("a").List(t.Context(), metav1.ListOptions{})
	_, podsErr := client.CoreV1().Pods("a").List(t.Context(), metav1.ListOptions{})
	eventsErr := events.Events("a").Delete(t.Context(), "e", metav1.DeleteOptions{})
	if jobsErr == nil || podsErr == nil || eventsErr == nil {
		t.Fatalf("errors %v, %v, %v: want that the server refuses all", jobsErr, podsErr, eventsErr)
	}
	host := strings.TrimPrefix(server.URL, "http://")
	want := `# HELP rest_client_requests_total Requests to the API server, by status code, method and host. The code of a request without an answer is <error>.
# TYPE rest_client_requests_total counter
rest_client_requests_total{code="403",host="` + host + `",method="DELETE"} 1
rest_client_requests_total{code="403",host="` + host + `",method="GET"} 2
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "rest_client_requests_total"); err != nil {
		t.Error(err)
	}
	for _, histogram := range []string{"rest_client_request_duration_seconds", "rest_client_rate_limiter_duration_seconds"} {
		if n, err := testutil.GatherAndCount(registry, histogram); err != nil || n != 2 {
			t.Errorf("%d series of %s (%v), want one for each of 2 methods", n, histogram, err)
		}
	}
}
