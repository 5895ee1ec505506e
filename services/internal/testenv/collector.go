package testenv

import (
	"context"
	"sync"
	"testing"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// Collector is an OTLP collector that keeps what it receives over gRPC.
type Collector struct {
	collectorv1.UnimplementedTraceServiceServer
	// Endpoint is the value for OTEL_EXPORTER_OTLP_ENDPOINT.
	Endpoint string

	mu    sync.Mutex
	spans []Span
}

// A Span is a received span and its service.
type Span struct {
	*tracev1.Span
	Service string
}

// NewCollector serves until the test ends.
func NewCollector(t testing.TB) *Collector {
	t.Helper()
	lis := Listen(t)
	c := &Collector{Endpoint: "http://" + lis.Addr().String()}
	server := grpc.NewServer()
	collectorv1.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(lis) }()
	t.Cleanup(server.Stop)
	return c
}

// Export implements the OTLP trace service.
func (c *Collector) Export(_ context.Context, req *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range req.GetResourceSpans() {
		var service string
		for _, attr := range resource.GetResource().GetAttributes() {
			if attr.GetKey() == "service.name" {
				service = attr.GetValue().GetStringValue()
			}
		}
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				c.spans = append(c.spans, Span{Span: span, Service: service})
			}
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

// Spans returns what has been received so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}
