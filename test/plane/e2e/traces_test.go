package e2e

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// A collector receives OTLP traces over gRPC, as any collector would.
type collector struct {
	collectorv1.UnimplementedTraceServiceServer
	address string
	server  *grpc.Server

	mu    sync.Mutex
	spans []span
}

// A span is a received span with the service that sent it.
type span struct {
	*tracev1.Span
	service string
}

func startCollector() (*collector, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &collector{address: listener.Addr().String(), server: grpc.NewServer()}
	collectorv1.RegisterTraceServiceServer(c.server, c)
	go func() { _ = c.server.Serve(listener) }() // ends with stop
	return c, nil
}

func (c *collector) stop() { c.server.Stop() }

// Export implements the OTLP trace service.
func (c *collector) Export(_ context.Context, request *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		service := ""
		for _, attribute := range resource.GetResource().GetAttributes() {
			if attribute.GetKey() == "service.name" {
				service = attribute.GetValue().GetStringValue()
			}
		}
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, span{s, service})
			}
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

// tracesOf returns the spans of every trace in which some span carries the
// value, by trace.
func (c *collector) tracesOf(value string) map[string][]span {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[string][]span{}
	for _, s := range c.spans {
		for _, attribute := range s.GetAttributes() {
			if attribute.GetValue().GetStringValue() == value {
				found[string(s.GetTraceId())] = nil
			}
		}
	}
	for _, s := range c.spans {
		if _, ok := found[string(s.GetTraceId())]; ok {
			found[string(s.GetTraceId())] = append(found[string(s.GetTraceId())], s)
		}
	}
	return found
}

// path names a span and the spans above it, outermost first.
func path(trace []span, s span) string {
	names := []string{s.service + ":" + s.GetName()}
	for parent := s.GetParentSpanId(); len(parent) > 0; {
		i := slices.IndexFunc(trace, func(candidate span) bool { return string(candidate.GetSpanId()) == string(parent) })
		if i < 0 {
			names = append(names, "(missing "+hex.EncodeToString(parent)+")")
			break
		}
		names = append(names, trace[i].service+":"+trace[i].GetName())
		parent = trace[i].GetParentSpanId()
	}
	slices.Reverse(names)
	return strings.Join(names, " > ")
}

// The life of one Job can be read in its traces: why it was reconciled, what the engine
// was asked, which rules it asked, each write, and the confirmation.
func TestTracesTellAJobsLife(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createJob(t, namespace, "traced", batchv1.JobSpec{Template: shell("true", corev1.RestartPolicyNever)})
	job := waitFinished(t, namespace, "traced")
	const (
		executor = "jobpolicy-executor:"
		engine   = "jobpolicy-engine:"
	)
	want := []string{
		executor + "pod.created", executor + "status.written", executor + "finalizer.released", engine + "decision.made",
	}
	eventually(t, "spans of every kind, each below a reconcile", func() (bool, string) {
		paths := pathsOf(t, string(job.UID))
		for _, end := range want {
			below := func(p string) bool {
				return strings.HasSuffix(p, " > "+end) && strings.HasPrefix(p, executor+"job.reconciled > ")
			}
			if !slices.ContainsFunc(paths, below) {
				return false, fmt.Sprintf("no %s in:\n%s", end, strings.Join(paths, "\n"))
			}
		}
		return true, ""
	})
	checkEvents(t, string(job.UID), "decision.made", "backoffLimitExceeded")
	checkEvents(t, string(job.UID), "decision.made", "completionsReached")
	checkEvents(t, string(job.UID), "finalizer.released", "release.confirmed")
}

func pathsOf(t *testing.T, uid string) []string {
	t.Helper()
	var paths []string
	for _, trace := range traces.tracesOf(uid) {
		for _, s := range trace {
			paths = append(paths, path(trace, s))
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// checkEvents wants a span of the name to have an event that is called so, or
// has an attribute that reads so.
func checkEvents(t *testing.T, uid, name, want string) {
	t.Helper()
	for _, trace := range traces.tracesOf(uid) {
		for _, s := range trace {
			if s.GetName() == name && slices.ContainsFunc(s.GetEvents(), func(e *tracev1.Span_Event) bool { return tells(e, want) }) {
				return
			}
		}
	}
	t.Errorf("no span %s has an event that tells of %s", name, want)
}

func tells(event *tracev1.Span_Event, want string) bool {
	if event.GetName() == want {
		return true
	}
	for _, attribute := range event.GetAttributes() {
		if attribute.GetValue().GetStringValue() == want {
			return true
		}
	}
	return false
}
