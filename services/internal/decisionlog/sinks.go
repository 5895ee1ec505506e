package decisionlog

import (
	"bytes"
	"context"
	"io"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	otellog "go.opentelemetry.io/otel/log"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/encoding/protojson"

	"jobpolicy.dev/executor"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	services "jobpolicy.dev/services/internal/telemetry"
)

type encoder func(to *bytes.Buffer, record *jobpolicyv1.DecisionRecord) error

var encoders = map[string]encoder{formatJSON: encodeLine, formatBinary: encodeDelimited}

func encodeLine(to *bytes.Buffer, record *jobpolicyv1.DecisionRecord) error {
	line, err := protojson.Marshal(record)
	if err != nil {
		return err
	}
	to.Write(line)
	to.WriteByte('\n')
	return nil
}

func encodeDelimited(to *bytes.Buffer, record *jobpolicyv1.DecisionRecord) error {
	_, err := protodelim.MarshalTo(to, record)
	return err
}

// fileSink writes each record with one call, so that no record is split between two
// files.
type fileSink struct {
	w      io.Writer
	encode encoder
	file   rotated // nil: w is standard output, and stays open.
	// cut says that w ends with a part of a record. What follows that could not be read.
	cut   bool
	count counter
	buf   bytes.Buffer
}

// rotated is a file that can be renamed, so that another one is begun.
type rotated interface {
	io.Closer
	Rotate() error
}

func (s *fileSink) write(_ context.Context, record *jobpolicyv1.DecisionRecord) error {
	err := s.append(record)
	s.count(1, err)
	return err
}

func (s *fileSink) append(record *jobpolicyv1.DecisionRecord) error {
	s.buf.Reset()
	if err := s.encode(&s.buf, record); err != nil {
		return err
	}
	if err := s.leaveCutFile(); err != nil {
		return err
	}
	n, err := s.w.Write(s.buf.Bytes())
	// A full disk may take no byte at all. A new file for each record would then push out
	// the older files.
	s.cut = err != nil && n > 0
	return err
}

func (s *fileSink) leaveCutFile() error {
	if !s.cut || s.file == nil {
		return nil
	}
	return s.file.Rotate()
}

func (s *fileSink) close(context.Context) error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// eventDecision is the event name of a log record.
const eventDecision = "jobpolicy.decision"

// collectorSink sends each record as a log record, whose body is the record's JSON. The
// context carries the span, which links the log record to the trace.
type collectorSink struct {
	logs   *services.Logs
	logger otellog.Logger
	// waiting has an element for each record that was not sent yet. While it is full, write
	// waits.
	waiting chan struct{}
	count   counter
}

func newCollectorSink(ctx context.Context, service services.Service, count counter, log *slog.Logger) (*collectorSink, error) {
	s := &collectorSink{waiting: make(chan struct{}, services.MaxWaitingLogs), count: count}
	logs, err := services.StartLogs(ctx, service, s.sent, log)
	if err != nil {
		return nil, err
	}
	s.logs, s.logger = logs, logs.Provider.Logger(executor.TracerName)
	return s, nil
}

// sent counts records when it is known what became of them.
func (s *collectorSink) sent(records int, err error) {
	s.count(records, err)
	for range records {
		<-s.waiting
	}
}

func (s *collectorSink) write(ctx context.Context, record *jobpolicyv1.DecisionRecord) error {
	body, err := protojson.Marshal(record)
	if err != nil {
		s.count(1, err)
		return err
	}
	var r otellog.Record
	r.SetEventName(eventDecision)
	r.SetTimestamp(record.GetTime().AsTime())
	r.SetSeverity(otellog.SeverityInfo)
	if record.GetError() != nil || record.GetOutcome() == jobpolicyv1.ApplyOutcome_APPLY_OUTCOME_FAILED {
		r.SetSeverity(otellog.SeverityWarn)
	}
	r.SetBody(attribute.StringValue(string(body)))
	r.AddAttributes(attributes(record)...)
	s.waiting <- struct{}{}
	s.logger.Emit(ctx, r)
	return nil
}

// attributes are the same as those of spans, by which people search.
func attributes(record *jobpolicyv1.DecisionRecord) []attribute.KeyValue {
	attrs := []attribute.KeyValue{attribute.String("jobpolicy.outcome", record.GetOutcome().String())}
	if cron := record.GetCronJob(); cron != nil {
		object := cron.GetRequest().GetCronJob()
		return append(attrs,
			executor.AttrNamespace.String(object.GetNamespace()),
			executor.AttrCronJobName.String(object.GetName()))
	}
	object := record.GetJob().GetRequest().GetJob()
	return append(attrs,
		executor.AttrNamespace.String(object.GetNamespace()),
		executor.AttrJobName.String(object.GetName()))
}

func (s *collectorSink) close(ctx context.Context) error { return s.logs.Shutdown(ctx) }
