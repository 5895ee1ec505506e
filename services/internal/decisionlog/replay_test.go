package decisionlog_test

import (
	"bufio"
	"encoding/json"
	"io/fs"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/cronjob"
	"jobpolicy.dev/proto/conformance"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/decisionlog"
	"jobpolicy.dev/services/internal/refusal"
)

// scenarios are a log of the conformance kit's cases of Jobs.
func scenarios(t testing.TB) (log []*jobpolicyv1.DecisionRecord) {
	t.Helper()
	err := fs.WalkDir(conformance.Files, "decide_job", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		file, err := conformance.Files.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			log = append(log, asRecord(t, lines.Bytes()))
		}
		return lines.Err()
	})
	if err != nil || len(log) < 100 {
		t.Fatalf("%d cases, error %v", len(log), err)
	}
	return log
}

func asRecord(t testing.TB, line []byte) *jobpolicyv1.DecisionRecord {
	t.Helper()
	var c conformance.Case
	if err := json.Unmarshal(line, &c); err != nil {
		t.Fatal(err)
	}
	exchange := &jobpolicyv1.JobExchange{Request: &jobpolicyv1.DecideJobRequest{}}
	record := &jobpolicyv1.DecisionRecord{Exchange: &jobpolicyv1.DecisionRecord_Job{Job: exchange}}
	if err := protojson.Unmarshal(c.Request, exchange.Request); err != nil {
		t.Fatal(err)
	}
	if c.Error != nil {
		record.Error = &status.Status{Code: int32(codes.InvalidArgument)}
		return record
	}
	exchange.Response = &jobpolicyv1.DecideJobResponse{}
	if err := protojson.Unmarshal(c.Response, exchange.Response); err != nil {
		t.Fatal(err)
	}
	return record
}

func sequence(log []*jobpolicyv1.DecisionRecord) iter.Seq2[*jobpolicyv1.DecisionRecord, error] {
	return func(yield func(*jobpolicyv1.DecisionRecord, error) bool) {
		for _, record := range log {
			if !yield(record, nil) {
				return
			}
		}
	}
}

var ours = decisionlog.Engine{Job: decideJob, CronJob: cronjob.Decide}

func decideJob(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	answer, err := engine.DecideJob(req)
	if err != nil {
		err = refusal.FromEngine(err)
	}
	return answer, err
}

func TestTheSameEngineDecidesTheSame(t *testing.T) {
	log := scenarios(t)
	got, err := decisionlog.Replay(sequence(log), ours)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decisionlog.Result{Same: len(log)}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A log of an engine that did not say how Jobs failed is the same but for that.
func TestEndsThatALogLacksAreNoDifferences(t *testing.T) {
	log, without := scenarios(t), 0
	for _, record := range log {
		if v := record.GetJob().GetResponse().GetVerdict(); v.GetEnd() != nil {
			v.End = nil
			without++
		}
	}
	got, err := decisionlog.Replay(sequence(log), ours)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decisionlog.Result{Same: len(log)}, got); diff != "" || without == 0 {
		t.Errorf("of %d failures (-want +got):\n%s", without, diff)
	}
}

// Each difference says by which rule it was decided then, and now.
func TestDifferencesAreFound(t *testing.T) {
	lenient := ours
	lenient.Job = func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		if spec := req.GetSpec(); spec != nil && spec.GetBackoffLimit() < 1000 {
			spec.BackoffLimit += 100
		}
		return decideJob(req)
	}
	got, err := decisionlog.Replay(sequence(scenarios(t)), lenient)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(got.Differences, func(d decisionlog.Difference) bool {
		return d.Then == jobpolicyv1.Rule_RULE_BACKOFF_LIMIT_EXCEEDED.Name() && d.Now == "no verdict" && slices.Contains(d.Fields, "status") && d.Object == "job/ns/job" && d.Record > 0
	}) {
		t.Errorf("no Job goes on that had too many failures: %v", got.Differences)
	}
	patient := ours
	patient.Settings = settings(t, `{"podFailureBackoff": "300s"}`)
	got, err = decisionlog.Replay(sequence(scenarios(t)), patient)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(got.Differences, func(d decisionlog.Difference) bool { return slices.Contains(d.Fields, "requeue_time") }) {
		t.Errorf("no requeue time differs with another delay: %v", got.Differences)
	}
}

func settings(t *testing.T, text string) *decisionlog.Settings {
	t.Helper()
	s, err := decisionlog.ParseSettings(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Each field that is given replaces that of the request as a whole, also with its default.
func TestSettingsReplaceThoseOfARequest(t *testing.T) {
	recorded := &jobpolicyv1.Settings{PodFailureBackoff: durationpb.New(10 * time.Second), MaxPodChanges: 7, KeepStartTimeOnSuspend: true}
	cases := map[string]struct {
		given    string
		recorded *jobpolicyv1.Settings
		want     *jobpolicyv1.Settings
	}{
		"less than a second": {
			given: `{"podFailureBackoff": "0.5s"}`, recorded: recorded,
			want: &jobpolicyv1.Settings{PodFailureBackoff: durationpb.New(500 * time.Millisecond), MaxPodChanges: 7, KeepStartTimeOnSuspend: true},
		},
		"false, and 0 by the name in the contract": {
			given: `{"keepStartTimeOnSuspend": false, "max_pod_changes": 0}`, recorded: recorded,
			want: &jobpolicyv1.Settings{PodFailureBackoff: durationpb.New(10 * time.Second)},
		},
		"the default": {
			given: `{"podFailureBackoff": null}`, recorded: recorded,
			want: &jobpolicyv1.Settings{MaxPodChanges: 7, KeepStartTimeOnSuspend: true},
		},
		"none":                       {given: `{}`, recorded: recorded, want: recorded},
		"a request without settings": {given: `{"maxPodChanges": 3}`, want: &jobpolicyv1.Settings{MaxPodChanges: 3}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got *jobpolicyv1.Settings
			e := decisionlog.Engine{Settings: settings(t, tc.given), Job: func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
				got = req.GetSettings()
				return &jobpolicyv1.DecideJobResponse{}, nil
			}}
			before := proto.CloneOf(tc.recorded)
			exchange := &jobpolicyv1.JobExchange{Request: &jobpolicyv1.DecideJobRequest{Settings: tc.recorded}}
			if _, err := e.Decide(&jobpolicyv1.DecisionRecord{Exchange: &jobpolicyv1.DecisionRecord_Job{Job: exchange}}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, protocmp.Transform()); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.recorded, protocmp.Transform()); diff != "" {
				t.Errorf("the record has changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsNotComparable(t *testing.T) {
	valid := scenarios(t)[0]
	refused := &jobpolicyv1.DecisionRecord{Exchange: valid.Exchange, Error: &status.Status{Code: int32(codes.InvalidArgument)}}
	refused.Exchange = &jobpolicyv1.DecisionRecord_Job{Job: &jobpolicyv1.JobExchange{Request: valid.GetJob().GetRequest()}}
	hidden := &jobpolicyv1.DecisionRecord{
		Redacted: true,
		Exchange: &jobpolicyv1.DecisionRecord_CronJob{CronJob: &jobpolicyv1.CronJobExchange{
			Request: &jobpolicyv1.DecideCronJobRequest{NamesTaken: []string{"redacted-1"}}, Response: &jobpolicyv1.DecideCronJobResponse{},
		}},
	}
	away := &jobpolicyv1.DecisionRecord{Exchange: refused.Exchange, Error: &status.Status{Code: int32(codes.Unavailable)}}
	got, err := decisionlog.Replay(sequence([]*jobpolicyv1.DecisionRecord{away, hidden, {Time: timestamppb.Now()}, refused}), ours)
	want := decisionlog.Result{Skipped: 3, Differences: []decisionlog.Difference{{
		Record: 4, Object: "job/ns/job", Then: "refused: InvalidArgument", Now: "no verdict", Fields: []string{"the answer"},
	}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, (-want +got):\n%s", err, diff)
	}
	gone := ours
	gone.Job = func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		return nil, grpcstatus.Error(codes.Unavailable, "away")
	}
	if _, err := decisionlog.Replay(sequence([]*jobpolicyv1.DecisionRecord{valid}), gone); grpcstatus.Code(err) != codes.Unavailable {
		t.Errorf("error %v of an engine that is away, want Unavailable", err)
	}
}

func BenchmarkReplay(b *testing.B) {
	log := scenarios(b)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if _, err := decisionlog.Replay(sequence(log), ours); err != nil {
			b.Fatal(err)
		}
		n += len(log)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "decisions/s")
}
