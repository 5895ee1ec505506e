package decisionlog

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/trace"
	logsv1 "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/telemetry"
	"jobpolicy.dev/services/internal/testenv"
)

// collector keeps what it is sent.
type collector struct {
	logsv1.UnimplementedLogsServiceServer
	refuses  bool
	delay    time.Duration // of each answer
	mu       sync.Mutex
	requests []*logsv1.ExportLogsServiceRequest
}

func (c *collector) Export(_ context.Context, req *logsv1.ExportLogsServiceRequest) (*logsv1.ExportLogsServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, req)
	time.Sleep(c.delay)
	if c.refuses {
		return nil, status.Error(codes.InvalidArgument, "too large")
	}
	return &logsv1.ExportLogsServiceResponse{}, nil
}

// serve starts the collector, and makes logs go to it.
func (c *collector) serve(t *testing.T) {
	t.Helper()
	lis := testenv.Listen(t)
	server := grpc.NewServer()
	logsv1.RegisterLogsServiceServer(server, c)
	go func() { _ = server.Serve(lis) }() // Stop ends it.
	t.Cleanup(server.Stop)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+lis.Addr().String())
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
}

// More records than may wait are recorded. Each is counted by what became of it.
func TestRecordsForACollectorAreCountedWhenTheyAreSent(t *testing.T) {
	const records = telemetry.MaxWaitingLogs + 1000
	for result, refuses := range map[string]bool{resultWritten: false, resultFailed: true} {
		t.Run(result, func(t *testing.T) {
			c := &collector{refuses: refuses, delay: 100 * time.Millisecond}
			c.serve(t)
			log, _ := open(t, options(toCollector))
			for n := range records {
				log.Record(t.Context(), jobRecord(1, n))
			}
			_ = log.Close(t.Context()) // The error is of the records that are refused.
			if got := testutil.ToFloat64(log.count.WithLabelValues(result)); got != records {
				t.Errorf("%v are counted as %s, want %d", got, result, records)
			}
		})
	}
}

// A log record holds the decision, and is linked to the trace in which it was made.
func TestRecordsReachACollector(t *testing.T) {
	c := &collector{}
	c.serve(t)
	log, end := open(t, options(toCollector))
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	want := jobRecord(1, 1)
	log.Record(trace.ContextWithSpanContext(t.Context(), span), want)
	end()
	if len(c.requests) != 1 {
		t.Fatalf("%d requests, want 1", len(c.requests))
	}
	resource := c.requests[0].GetResourceLogs()[0]
	record := resource.GetScopeLogs()[0].GetLogRecords()[0]
	got := &jobpolicyv1.DecisionRecord{}
	if err := protojson.Unmarshal([]byte(record.GetBody().GetStringValue()), got); err != nil || !proto.Equal(got, want) {
		t.Errorf("error %v, record %v, want %v", err, got, want)
	}
	if trace.TraceID(record.GetTraceId()) != span.TraceID() || trace.SpanID(record.GetSpanId()) != span.SpanID() {
		t.Errorf("trace %x and span %x, want those of %v", record.GetTraceId(), record.GetSpanId(), span)
	}
	attrs := map[string]string{}
	for _, attr := range append(record.GetAttributes(), resource.GetResource().GetAttributes()...) {
		attrs[attr.GetKey()] = attr.GetValue().GetStringValue()
	}
	if attrs["service.name"] != "test" || attrs["jobpolicy.outcome"] != "APPLY_OUTCOME_FAILED" || attrs["k8s.job.name"] != "secret-job" {
		t.Errorf("attributes %v; want the service, the outcome and the Job", attrs)
	}
}
