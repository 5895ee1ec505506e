package policyserver

import (
	"context"
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/logging"
	"jobpolicy.dev/services/internal/telemetry"
)

// callMetrics counts calls and their messages. Names and labels are those of
// go-grpc-middleware, which dashboards know. It is a stats handler of our own,
// because that library's are interceptors, which see no call that is refused
// before its message is decoded.
type callMetrics struct {
	handled     *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	bytes       *prometheus.HistogramVec
	callers     *prometheus.CounterVec
	refusals    *prometheus.CounterVec
	connections *prometheus.CounterVec
	known       map[string]method
	// limited has a logger for each reason for which calls or connections are refused.
	limited map[string]*slog.Logger
}

// method is a full method name in two parts.
type method struct{ service, name string }

// unknownCall stands for all methods that are not served. Clients choose those names, and
// each name would be a time series.
var unknownCall = method{service: "unknown", name: "unknown"}

// Values of the label direction.
const (
	directionRequest  = "request"
	directionResponse = "response"
)

// full is the name as gRPC writes it.
func (m method) full() string { return "/" + m.service + "/" + m.name }

var methodLabels = []string{"grpc_service", "grpc_method", "grpc_code"}

func newCallMetrics(r prometheus.Registerer, log *slog.Logger) (*callMetrics, error) {
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
		callers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobpolicy_engine_caller_calls_total",
			Help: "Calls completed, by caller (identity of its certificate), method and gRPC code.",
		}, []string{"caller", "grpc_method", "grpc_code"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobpolicy_engine_refused_calls_total",
			Help: "Calls that got no answer, by caller and by reason (ErrorReason of the contract).",
		}, []string{"caller", "reason"}),
		connections: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobpolicy_engine_refused_connections_total",
			Help: "Connections that were not let in, by reason: handshake (the certificate, or too slow), too_many (of one caller), full (of all callers); or were closed: replaced (by one of a caller that has fewer).",
		}, []string{"reason"}),
		known:   map[string]method{},
		limited: map[string]*slog.Logger{},
	}
	for value := range jobpolicyv1.ErrorReason_name {
		m.limit(jobpolicyv1grpc.ReasonName(jobpolicyv1.ErrorReason(value)), log)
	}
	for _, reason := range []string{refusedHandshake, refusedTooMany, refusedFull, replacedByOther} {
		m.connections.WithLabelValues(reason)
		m.limit(reason, log)
	}
	return m, errors.Join(r.Register(m.handled), r.Register(m.duration), r.Register(m.bytes), r.Register(m.callers), r.Register(m.refusals), r.Register(m.connections))
}

// limit makes the logger of a reason. Each reason is limited by itself, so that the first
// call or connection that is refused for it is logged at once.
func (m *callMetrics) limit(reason string, log *slog.Logger) {
	m.limited[reason] = logging.Bounded(log.With("reason", reason))
}

// know sets which methods get a label of their own. It must be called before serving.
func (m *callMetrics) know(services map[string]grpc.ServiceInfo) {
	m.zero(unknownCall)
	for service, info := range services {
		for _, rpc := range info.Methods {
			m.known["/"+service+"/"+rpc.Name] = method{service: service, name: rpc.Name}
			if service == jobpolicyv1grpc.PolicyService_ServiceDesc.ServiceName {
				m.zero(method{service: service, name: rpc.Name})
			}
		}
	}
}

// zero exports a series for each code before the first call that ends with it. Otherwise
// an alert about the increase of a series would miss the call that begins it.
func (m *callMetrics) zero(called method) {
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		m.handled.WithLabelValues(called.service, called.name, code.String())
	}
}

type methodKey struct{}

// TagRPC implements stats.Handler.
func (m *callMetrics) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	called, ok := m.known[info.FullMethodName]
	if !ok {
		called = unknownCall
	}
	return context.WithValue(ctx, methodKey{}, called)
}

// HandleRPC implements stats.Handler.
func (m *callMetrics) HandleRPC(ctx context.Context, event stats.RPCStats) {
	called, _ := ctx.Value(methodKey{}).(method)
	switch event := event.(type) {
	case *stats.OutTrailer:
		if c := callFrom(ctx); c != nil {
			c.trailed.Store(true)
		}
	case *stats.OutPayload:
		m.bytes.WithLabelValues(called.service, called.name, directionResponse).Observe(float64(event.WireLength))
	case *stats.End:
		code := status.Code(event.Error).String()
		m.handled.WithLabelValues(called.service, called.name, code).Inc()
		took := event.EndTime.Sub(event.BeginTime).Seconds()
		telemetry.Observe(ctx, m.duration.WithLabelValues(called.service, called.name, code), took)
		if c := callFrom(ctx); c != nil {
			m.callers.WithLabelValues(c.conn.caller.label, called.name, code).Inc()
			if event.Error != nil {
				m.refused(c, called, event.Error)
			}
		}
	}
}

// received counts a request. gRPC reports none, because receive reads the messages.
func (m *callMetrics) received(called method, bytes int) {
	m.bytes.WithLabelValues(called.service, called.name, directionRequest).Observe(float64(bytes + frameBytes))
}

// frameBytes is the length of the header that gRPC puts before each message.
const frameBytes = 5

// refused counts a call that failed, and logs what concerns an operator.
func (m *callMetrics) refused(c *call, called method, err error) {
	if called.service != ServiceName && status.Code(err) == codes.Canceled {
		return // The caller ended a stream, such as its watch of health.
	}
	reason := jobpolicyv1grpc.ReasonOf(err)
	name := jobpolicyv1grpc.ReasonName(reason)
	m.refusals.WithLabelValues(c.conn.caller.label, name).Inc()
	switch reason {
	case jobpolicyv1.ErrorReason_ERROR_REASON_UNSPECIFIED, jobpolicyv1.ErrorReason_ERROR_REASON_INVALID_REQUEST,
		jobpolicyv1.ErrorReason_ERROR_REASON_UNSUPPORTED_FIELD, jobpolicyv1.ErrorReason_ERROR_REASON_CALL_ENDED:
		return // These concern only the caller.
	}
	m.limited[name].Warn("calls refused", "caller", shown(c.conn.ids.primary()), "method", called.name, "error", status.Convert(err).Message())
}

// Reasons for which a connection is not let in, or closed.
const (
	refusedHandshake = "handshake"
	refusedTooMany   = "too_many"
	refusedFull      = "full"
	replacedByOther  = "replaced"
)

// connectionRefused counts a connection whose caller is not known, because its handshake
// failed. The credentials have logged it.
func (m *callMetrics) connectionRefused(reason string) { m.connections.WithLabelValues(reason).Inc() }

// connectionEnded counts and logs a connection of a caller.
func (m *callMetrics) connectionEnded(reason, message string, c *connection) {
	m.connections.WithLabelValues(reason).Inc()
	m.limited[reason].Warn(message, "caller", shown(c.ids.primary()), "client", c.raw.RemoteAddr().String())
}

// TagConn implements stats.Handler.
func (m *callMetrics) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (m *callMetrics) HandleConn(context.Context, stats.ConnStats) {}

// registerHeld adds the metric that says how much of the shared memory calls hold.
func registerHeld(r prometheus.Registerer, p *pools) error {
	var errs []error
	for kind, pool := range map[string]*pool{"received": p.received, "decoded": p.decoded, "answers": p.answers} {
		errs = append(errs, r.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "jobpolicy_engine_held_bytes",
			Help:        "Memory that calls hold, by kind: received (requests as they came), decoded (with what deciding takes), answers (not written yet).",
			ConstLabels: prometheus.Labels{"kind": kind},
		}, func() float64 { return float64(pool.held.Load()) })))
	}
	return errors.Join(errs...)
}
