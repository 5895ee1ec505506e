package policyserver

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// callMetrics counts calls and their messages. It is a stats handler and no interceptor, because
// interceptors do not see calls that end before a request is decoded. Names and
// labels are those of go-grpc-middleware, which dashboards know.
type callMetrics struct {
	handled  *prometheus.CounterVec
	duration *prometheus.HistogramVec
	bytes    *prometheus.HistogramVec
	known    map[string]method
}

// method is a full method name in two parts.
type method struct{ service, name string }

// unknown stands for whatever else clients ask for: they choose those names, and
// each name would be a time series.
var unknown = method{service: "unknown", name: "unknown"}

// Values of the label direction.
const (
	directionRequest  = "request"
	directionResponse = "response"
)

var methodLabels = []string{"grpc_service", "grpc_method", "grpc_code"}

func newCallMetrics(r prometheus.Registerer) (*callMetrics, error) {
	m := &callMetrics{
		handled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "grpc_server_handled_total",
			Help: "Calls completed, by method and gRPC code.",
		}, methodLabels),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "grpc_server_handling_seconds",
			Help:    "Time from the first byte of a call to its end, by method and gRPC code.",
			Buckets: prometheus.ExponentialBuckets(100e-6, 4, 9),
		}, methodLabels),
		bytes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "jobpolicy_engine_message_bytes",
			Help:    "Size of the messages of calls on the wire, before encryption, by method and direction.",
			Buckets: prometheus.ExponentialBuckets(256, 4, 9),
		}, []string{"grpc_service", "grpc_method", "direction"}),
		known: map[string]method{},
	}
	return m, errors.Join(r.Register(m.handled), r.Register(m.duration), r.Register(m.bytes))
}

// know sets which methods get a label of their own. To be called before serving.
func (m *callMetrics) know(services map[string]grpc.ServiceInfo) {
	for service, info := range services {
		for _, rpc := range info.Methods {
			m.known["/"+service+"/"+rpc.Name] = method{service: service, name: rpc.Name}
		}
	}
}

type methodKey struct{}

// TagRPC implements stats.Handler.
func (m *callMetrics) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	called, ok := m.known[info.FullMethodName]
	if !ok {
		called = unknown
	}
	return context.WithValue(ctx, methodKey{}, called)
}

// HandleRPC implements stats.Handler.
func (m *callMetrics) HandleRPC(ctx context.Context, event stats.RPCStats) {
	called, _ := ctx.Value(methodKey{}).(method)
	switch event := event.(type) {
	case *stats.InPayload:
		m.bytes.WithLabelValues(called.service, called.name, directionRequest).Observe(float64(event.WireLength))
	case *stats.OutPayload:
		m.bytes.WithLabelValues(called.service, called.name, directionResponse).Observe(float64(event.WireLength))
	case *stats.End:
		code := status.Code(event.Error).String()
		m.handled.WithLabelValues(called.service, called.name, code).Inc()
		m.duration.WithLabelValues(called.service, called.name, code).Observe(event.EndTime.Sub(event.BeginTime).Seconds())
	}
}

// TagConn implements stats.Handler.
func (m *callMetrics) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (m *callMetrics) HandleConn(context.Context, stats.ConnStats) {}
