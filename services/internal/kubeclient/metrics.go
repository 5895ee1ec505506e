package kubeclient

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/metrics"

	"jobpolicy.dev/services/internal/telemetry"
)

// requestMetrics count the requests to the API server. Names and labels are those of
// Kubernetes components. client-go has one hook for all clients of a process, so a process
// has one of these.
type requestMetrics struct {
	duration, limited *prometheus.HistogramVec
	requests, retries *prometheus.CounterVec
}

var processMetrics = sync.OnceValue(func() *requestMetrics {
	const subsystem = "rest_client"
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Subsystem: subsystem, Name: name, Help: help,
			Buckets: []float64{.005, .025, .1, .25, .5, 1, 2, 4, 8, 15, 30, 60},
		}, []string{"verb", "host"})
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Subsystem: subsystem, Name: name, Help: help}, labels)
	}
	m := &requestMetrics{
		duration: histogram("request_duration_seconds", "Time that requests to the API server took, by verb and host."),
		limited:  histogram("rate_limiter_duration_seconds", "Time that requests waited for --kube-api-qps, by verb and host."),
		requests: counter("requests_total", "Requests to the API server, by status code, method and host. The code of a request without an answer is <error>.", "code", "method", "host"),
		retries:  counter("request_retries_total", "Requests to the API server that were repeated, by status code, verb and host.", "code", "verb", "host"),
	}
	metrics.Register(metrics.RegisterOpts{
		RequestLatency:     latency{m.duration},
		RateLimiterLatency: latency{m.limited},
		RequestResult:      result{m.requests},
		RequestRetry:       retry{m.retries},
	})
	return m
})

// RegisterMetrics exports the metrics rest_client_* of all clients of this process.
func RegisterMetrics(r prometheus.Registerer) error {
	m := processMetrics()
	return errors.Join(r.Register(m.duration), r.Register(m.limited), r.Register(m.requests), r.Register(m.retries))
}

type latency struct{ *prometheus.HistogramVec }

// Observe implements metrics.LatencyMetric.
func (l latency) Observe(ctx context.Context, verb string, u url.URL, took time.Duration) {
	telemetry.Observe(ctx, l.WithLabelValues(verb, u.Host), took.Seconds())
}

type result struct{ *prometheus.CounterVec }

// Increment implements metrics.ResultMetric.
func (r result) Increment(_ context.Context, code, method, host string) {
	r.WithLabelValues(code, method, host).Inc()
}

type retry struct{ *prometheus.CounterVec }

// IncrementRetry implements metrics.RetryMetric.
func (r retry) IncrementRetry(_ context.Context, code, method, host string) {
	r.WithLabelValues(code, method, host).Inc()
}
