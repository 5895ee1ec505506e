package decisionlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"
	"gopkg.in/natefinch/lumberjack.v2"

	"jobpolicy.dev/proto/jobend"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/telemetry"
	"jobpolicy.dev/services/internal/testenv"
)

// jobRecord is the nth record of a Job.
func jobRecord(job byte, n int) *jobpolicyv1.DecisionRecord {
	return &jobpolicyv1.DecisionRecord{
		Time: timestamppb.New(timestamppb.Now().AsTime()),
		Exchange: &jobpolicyv1.DecisionRecord_Job{Job: &jobpolicyv1.JobExchange{
			Request: &jobpolicyv1.DecideJobRequest{
				RequestId: fmt.Sprint(n), Job: &jobpolicyv1.JobRef{Uid: append(make([]byte, 15), job), Namespace: "secret-ns", Name: "secret-job"},
				UnaccountedPods: []*jobpolicyv1.UnaccountedPod{{Failure: &jobpolicyv1.PodFailure{PodName: "secret-pod", ContainerExits: []*jobpolicyv1.ContainerExit{{ContainerName: "secret-main"}}}}},
			},
			Response: &jobpolicyv1.DecideJobResponse{RequestId: fmt.Sprint(n), Explanation: &jobpolicyv1.Explanation{Summary: "secret-job waits"}},
		}},
		Outcome: jobpolicyv1.ApplyOutcome_APPLY_OUTCOME_FAILED, Failure: "secret-job: quota",
	}
}

func options(to string) *Options {
	return &Options{To: to, Format: formatJSON, Sample: 1, MaxSize: 100, MaxFiles: 5}
}

// open starts a log, and returns what closes it.
func open(t *testing.T, o *Options) (*Log, func()) {
	t.Helper()
	log, err := o.Start(t.Context(), telemetry.Service{Name: "test"}, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return log, func() {
		t.Helper()
		if err := log.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

func readFile(t *testing.T, name string) (records []*jobpolicyv1.DecisionRecord) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for record, err := range Read(file) {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, record)
	}
	return records
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, format := range []string{formatJSON, formatBinary} {
		t.Run(format, func(t *testing.T) {
			o := options(filepath.Join(t.TempDir(), "new folder", "decisions.log"))
			o.Format = format
			log, end := open(t, o)
			var want []*jobpolicyv1.DecisionRecord
			for n := range 300 {
				want = append(want, jobRecord(1, n))
				log.Record(t.Context(), want[n])
			}
			end()
			if diff := cmp.Diff(want, readFile(t, o.To), protocmp.Transform()); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
			if got := testutil.ToFloat64(log.count.WithLabelValues(resultWritten)); got != 300 {
				t.Errorf("%v are counted as written, want 300", got)
			}
		})
	}
}

// A process that is killed leaves half a record. What is before it can be read.
func TestATruncatedLogIsReadUpToItsEnd(t *testing.T) {
	for _, format := range []string{formatJSON, formatBinary} {
		t.Run(format, func(t *testing.T) {
			o := options(filepath.Join(t.TempDir(), "decisions.log"))
			o.Format = format
			log, end := open(t, o)
			log.Record(t.Context(), jobRecord(1, 1))
			log.Record(t.Context(), jobRecord(1, 2))
			end()
			whole := testenv.ReadFile(t, o.To)
			var err error
			read := 0
			for _, err = range Read(strings.NewReader(string(whole[:len(whole)-5]))) {
				if err == nil {
					read++
				}
			}
			if read != 1 || !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "record 2") {
				t.Errorf("%d records and %v, want 1 and that record 2 is cut off", read, err)
			}
		})
	}
}

// ids are the request ids in all files of the folder. Each file is read up to its end,
// which may be a part of a record.
func ids(t *testing.T, dir string) (found []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "decisions*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for record, err := range Read(file) {
			if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s: %v", name, err)
			}
			if err == nil {
				found = append(found, record.GetJob().GetRequest().GetRequestId())
			}
		}
	}
	slices.Sort(found)
	return found
}

// A log is written, changed as the case says, and appended to.
func TestALogThatIsAppendedToIsRead(t *testing.T) {
	half := func(log []byte) []byte { return log[:len(log)-5] }
	as := func(log []byte) []byte { return log }
	cases := map[string]struct {
		formats   [2]string
		change    func([]byte) []byte
		want      []string
		wantFiles int
	}{
		"JSON":                     {[2]string{formatJSON, formatJSON}, as, []string{"1", "2", "3"}, 1},
		"protobuf":                 {[2]string{formatBinary, formatBinary}, as, []string{"1", "2", "3"}, 1},
		"JSON that is cut":         {[2]string{formatJSON, formatJSON}, half, []string{"1", "3"}, 2},
		"protobuf that is cut":     {[2]string{formatBinary, formatBinary}, half, []string{"1", "3"}, 2},
		"first JSON, now protobuf": {[2]string{formatJSON, formatBinary}, as, []string{"1", "2", "3"}, 2},
		"first protobuf, now JSON": {[2]string{formatBinary, formatJSON}, as, []string{"1", "2", "3"}, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := options(filepath.Join(dir, "decisions.log"))
			o.Format = tc.formats[0]
			log, end := open(t, o)
			log.Record(t.Context(), jobRecord(1, 1))
			log.Record(t.Context(), jobRecord(1, 2))
			end()
			written := testenv.ReadFile(t, o.To)
			testenv.WriteFile(t, o.To, tc.change(written))
			o.Format = tc.formats[1]
			log, end = open(t, o)
			log.Record(t.Context(), jobRecord(1, 3))
			end()
			if diff := cmp.Diff(tc.want, ids(t, dir)); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
			if files, err := os.ReadDir(dir); err != nil || len(files) != tc.wantFiles {
				t.Errorf("%d files, %v; want %d", len(files), err, tc.wantFiles)
			}
		})
	}
}

// Nothing is appended to a file that cannot be read, and the log starts.
func TestADamagedFileIsLeft(t *testing.T) {
	name := filepath.Join(t.TempDir(), "decisions")
	var whole bytes.Buffer
	if err := encodeDelimited(&whole, jobRecord(1, 1)); err != nil {
		t.Fatal(err)
	}
	for damage, content := range map[string][]byte{
		"a length that is none":    bytes.Repeat([]byte{0xff}, 20),
		"a length that is too big": binary.AppendUvarint(nil, maxRecord+1),
		"a record that is cut":     {9, 1},
	} {
		testenv.WriteFile(t, name, slices.Concat(whole.Bytes(), content))
		if goesOn, err := canGoOn(name, formatBinary); goesOn || err != nil {
			t.Errorf("%s: goes on %v, error %v", damage, goesOn, err)
		}
	}
}

// A named pipe cannot be looked into: nobody else may write into it.
func TestANamedPipeIsNotRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "decisions")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	looked := make(chan error, 1)
	go func() {
		goesOn, err := canGoOn(name, formatJSON)
		if !goesOn && err == nil {
			err = errors.New("it cannot be written")
		}
		looked <- err
	}()
	select {
	case err := <-looked:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it waits for somebody who writes")
	}
}

// full is a disk that has room for so many more bytes.
type full struct {
	io.Writer
	room int
}

var errFull = errors.New("no space left on device")

func (f *full) Write(p []byte) (int, error) {
	if len(p) <= f.room {
		f.room -= len(p)
		return f.Writer.Write(p)
	}
	n, err := f.Writer.Write(p[:f.room])
	f.room = 0
	return n, errors.Join(errFull, err)
}

func TestALogThatMetAFullDiskIsRead(t *testing.T) {
	for _, format := range []string{formatJSON, formatBinary} {
		t.Run(format, func(t *testing.T) {
			dir := t.TempDir()
			file := &lumberjack.Logger{Filename: filepath.Join(dir, "decisions.log")}
			var first bytes.Buffer
			if err := encoders[format](&first, jobRecord(1, 0)); err != nil {
				t.Fatal(err)
			}
			disk := &full{file, 7 * first.Len() / 2}
			to := &fileSink{w: disk, encode: encoders[format], file: file, count: func(int, error) {}}
			failed := 0
			for n := range 20 {
				if to.write(t.Context(), jobRecord(1, n)) != nil {
					failed++
				}
			}
			disk.room = 1 << 20
			if err := to.write(t.Context(), jobRecord(1, 99)); err != nil {
				t.Error(err)
			}
			if err := to.close(t.Context()); err != nil {
				t.Error(err)
			}
			if got := ids(t, dir); len(got) != 21-failed || !slices.Contains(got, "99") {
				t.Errorf("%d of 21 failed, and %q are read", failed, got)
			}
			if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
				t.Errorf("%d files, %v; want 2: the one that was cut, and the next", len(files), err)
			}
		})
	}
}

// kubectl logs has what a container writes to standard error and to standard output.
func TestOtherLinesBetweenRecordsAreSkipped(t *testing.T) {
	span := `{"Name":"job.reconciled","SpanContext":{}}`
	inJSON := `{"time":"2026-03-01T12:00:00.1Z","level":"INFO","msg":"service started"}`
	others := []string{"time=2026-03-01T12:00:00.1Z level=INFO msg=started", "W0301 12:00:00.1 1 reflector.go:1] watch ended", inJSON, span, "", "{", "a", "goroutine 1 [running]:", "\tmain.go:1"}
	var log bytes.Buffer
	for n, other := range others {
		fmt.Fprintln(&log, other)
		if err := encodeLine(&log, jobRecord(1, n)); err != nil {
			t.Fatal(err)
		}
	}
	log.WriteString("the last line")
	read := 0
	for record, err := range Read(&log) {
		if want := fmt.Sprint(read); err != nil || record.GetJob().GetRequest().GetRequestId() != want {
			t.Fatalf("record %v, %v; want that of request %s", record, err, want)
		}
		read++
	}
	if read != len(others) {
		t.Errorf("%d records, want %d", read, len(others))
	}
}

func TestALogWithoutAnyRecordIsAnError(t *testing.T) {
	for _, text := range []string{"kind: Job\n", "a\n\nb\n", "{\n}\n", "\x00\x01\x02\x03"} {
		var got error
		for _, got = range Read(strings.NewReader(text)) {
		}
		if !errors.Is(got, errNoRecord) {
			t.Errorf("%q: error %v, want %v", text, got, errNoRecord)
		}
	}
	for range Read(strings.NewReader("")) {
		t.Error("an empty log has something")
	}
}

func TestFilesAreRotated(t *testing.T) {
	dir := t.TempDir()
	o := options(filepath.Join(dir, "decisions.log"))
	o.MaxSize, o.MaxFiles = 1, 0
	log, end := open(t, o)
	const records = 500
	for n := range records {
		record := jobRecord(1, n)
		record.Failure = strings.Repeat("x", 5000)
		log.Record(t.Context(), record)
	}
	end()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(slices.Compact(ids(t, dir))); len(files) < 3 || got != records {
		t.Errorf("%d files with %d different records, want several with %d", len(files), got, records)
	}
}

// hanging is a sink that waits.
type hanging struct {
	release chan struct{}
	count   counter
}

func (h hanging) write(context.Context, *jobpolicyv1.DecisionRecord) error {
	<-h.release
	h.count(1, errFull)
	return errFull
}
func (h hanging) close(context.Context) error { return nil }

func TestASlowSinkDelaysNobody(t *testing.T) {
	log, err := newLog(options("x"), prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	to := hanging{make(chan struct{}), log.counted}
	log.start(to)
	const more = 100
	for n := range queueLength + 1 + more {
		log.Record(t.Context(), jobRecord(1, n)) // It would hang here.
	}
	// The sink holds one record, if it has begun.
	if dropped := testutil.ToFloat64(log.count.WithLabelValues(resultDropped)); dropped < more || dropped > more+1 {
		t.Errorf("%v are dropped, want %d", dropped, more)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	lost := fmt.Sprintf("%.0f records are lost", queueLength+1+more-testutil.ToFloat64(log.count.WithLabelValues(resultDropped)))
	if err := log.Close(ended); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), lost) {
		t.Errorf("close: %v, want that %s", err, lost)
	}
	log.Record(t.Context(), jobRecord(1, 0)) // It would panic on the closed queue.
	close(to.release)
	if err := log.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if failed := testutil.ToFloat64(log.count.WithLabelValues(resultFailed)); failed < queueLength {
		t.Errorf("%v failed, want all that were written", failed)
	}
}

func TestASampleHoldsWholeObjects(t *testing.T) {
	o := options(filepath.Join(t.TempDir(), "decisions.log"))
	o.Sample = 0.5
	log, end := open(t, o)
	for job := range 200 {
		for n := range 5 {
			log.Record(t.Context(), jobRecord(byte(job), n))
		}
	}
	end()
	count := map[byte]int{}
	for _, record := range readFile(t, o.To) {
		count[record.GetJob().GetRequest().GetJob().GetUid()[15]]++
	}
	for job, n := range count {
		if n != 5 {
			t.Errorf("job %d has %d records of 5", job, n)
		}
	}
	if len(count) < 60 || len(count) > 140 {
		t.Errorf("%d of 200 Jobs are logged, want about half", len(count))
	}
}

func TestARedactedLogHoldsNoName(t *testing.T) {
	o := options(filepath.Join(t.TempDir(), "decisions.log"))
	o.Redact = true
	log, end := open(t, o)
	record := jobRecord(1, 7)
	before := proto.CloneOf(record)
	log.Record(t.Context(), record)
	log.Record(t.Context(), &jobpolicyv1.DecisionRecord{
		Exchange: before.Exchange,
		Error:    &status.Status{Code: 3, Message: "secret-job is odd"},
	})
	end()
	if !proto.Equal(record, before) {
		t.Errorf("the record was changed: %v", record)
	}
	text := testenv.ReadFile(t, o.To)
	if strings.Contains(string(text), "secret") {
		t.Errorf("names stand in the log: %s", text)
	}
	records := readFile(t, o.To)
	a, b := records[0].GetJob().GetRequest(), records[1].GetJob().GetRequest()
	if name := a.GetJob().GetName(); !records[0].GetRedacted() || !strings.HasPrefix(name, redactedPrefix) || name != b.GetJob().GetName() || name == a.GetJob().GetNamespace() {
		t.Errorf("redacted %t, names %q and %q; want the same hash for the same name", records[0].GetRedacted(), name, b.GetJob().GetName())
	}
	if a.GetRequestId() != "7" {
		t.Errorf("request id %q, want 7", a.GetRequestId())
	}
}

// A condition that says how the Job failed is an input of the next decision, so what is no name in
// it stays, and the condition of the answer can be compared.
func TestTheEndOfAJobIsReadFromARedactedRecord(t *testing.T) {
	end := &jobpolicyv1.JobEnd{
		Class: jobpolicyv1.EndClass_END_CLASS_POLICY, Rule: jobpolicyv1.Rule_RULE_POD_FAILURE_POLICY_MATCHED, PolicyRuleIndex: new(int32),
		PolicyRuleName: "secret-rule", PodName: "secret-pod", ContainerName: "secret-main", ExitCode: 42, Tries: 2,
	}
	record := jobRecord(1, 7)
	record.GetJob().Request.Status = &jobpolicyv1.JobStatus{Conditions: []*jobpolicyv1.JobCondition{
		{Type: jobend.ConditionType, Reason: jobend.ClassName(end.GetClass()), Message: jobend.Message(end)},
		{Type: jobend.ConditionType, Reason: "Policy", Message: "secret"},
	}}
	redacted := newRedactor().record(record)
	if text := redacted.String(); strings.Contains(text, "secret") {
		t.Errorf("names stand in the record: %s", text)
	}
	c := redacted.GetJob().GetRequest().GetStatus().GetConditions()[0]
	read, ok := jobend.Read(c.GetReason(), c.GetMessage())
	if !ok || !strings.HasPrefix(read.GetPodName(), redactedPrefix) || !strings.HasPrefix(read.GetPolicyRuleName(), redactedPrefix) {
		t.Errorf("%s is read as %v, %v", c.GetMessage(), read, ok)
	}
	read.PolicyRuleName, read.PodName, read.ContainerName = end.GetPolicyRuleName(), end.GetPodName(), end.GetContainerName()
	if !proto.Equal(read, end) {
		t.Errorf("the rest is read as %v, want %v", read, end)
	}
}

// plain are the texts of a record that hold no name that a user chose.
var plain = []protoreflect.FullName{
	"google.protobuf.Any.type_url", // Details of errors are left out.
	"jobpolicy.v1.CreateJob.run_now", "jobpolicy.v1.CronJobSpec.run_now", "jobpolicy.v1.OwnedJob.run_now", "jobpolicy.v1.ObservedSchedule.schedule",
	"jobpolicy.v1.CronJobSpec.local_time_zone", "jobpolicy.v1.CronJobSpec.schedule", "jobpolicy.v1.CronJobSpec.time_zone",
	"jobpolicy.v1.DecideCronJobRequest.request_id", "jobpolicy.v1.DecideCronJobResponse.request_id",
	"jobpolicy.v1.DecideJobRequest.request_id", "jobpolicy.v1.DecideJobResponse.request_id",
	"jobpolicy.v1.JobCondition.reason", "jobpolicy.v1.JobCondition.type", "jobpolicy.v1.JobEvent.reason", "jobpolicy.v1.PodConditionPattern.type",
	"jobpolicy.v1.ContainerExit.reason", "jobpolicy.v1.JobEnd.reason", "jobpolicy.v1.EndFailure.reason", "jobpolicy.v1.PodFailure.reason", "jobpolicy.v1.PodStart.reason",
	"jobpolicy.v1.NextTryResources.max", "jobpolicy.v1.RaisedPods.max",
}

// A new field of text must be said to hold names or not.
func TestEveryTextIsPlainOrNamed(t *testing.T) {
	texts := textsOf((&jobpolicyv1.DecisionRecord{}).ProtoReflect().Descriptor())
	for name := range texts {
		if known := slices.Contains(plain, name); known == named[name] {
			t.Errorf("%s: expected in exactly one of the lists named and plain", name)
		}
	}
	for name := range named {
		if !texts[name] {
			t.Errorf("%s is no text of a record", name)
		}
	}
}

func textsOf(root protoreflect.MessageDescriptor) map[protoreflect.FullName]bool {
	texts, seen := map[protoreflect.FullName]bool{}, map[protoreflect.FullName]bool{}
	var walk func(protoreflect.MessageDescriptor)
	walk = func(d protoreflect.MessageDescriptor) {
		if d == nil || seen[d.FullName()] {
			return
		}
		seen[d.FullName()] = true
		for i := range d.Fields().Len() {
			switch f := d.Fields().Get(i); {
			case f.IsMap():
				texts[f.FullName()] = true
			case f.Kind() == protoreflect.StringKind:
				texts[f.FullName()] = true
			default:
				walk(f.Message())
			}
		}
	}
	walk(root)
	return texts
}

func TestOptionsNameWhatIsWrong(t *testing.T) {
	o := Options{Format: "xml", Sample: 1.5, MaxSize: 0, MaxFiles: -1}
	err := o.Validate()
	for _, want := range []string{`--decision-log-format must be json or protobuf, is "xml"`, "--decision-log-sample must be above 0 and at most 1, is 1.5", "--decision-log-max-size", "--decision-log-max-files"} {
		testenv.WantError(t, err, want)
	}
	for to, want := range map[string]string{"/dev/null/x": "--decision-log: ", "otlp": "--decision-log: expected OTEL_EXPORTER_OTLP_ENDPOINT"} {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
		_, err := options(to).Start(t.Context(), telemetry.Service{}, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
		testenv.WantError(t, err, want)
	}
}

// BenchmarkRecord is what a record costs: in the reconcile, and in the background.
func BenchmarkRecord(b *testing.B) {
	for _, format := range []string{formatJSON, formatBinary} {
		b.Run(format, func(b *testing.B) {
			to := &fileSink{w: io.Discard, encode: encoders[format], count: func(int, error) {}}
			record := jobRecord(1, 1)
			for b.Loop() {
				if err := to.write(b.Context(), record); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
