package executor

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"jobpolicy.dev/executor/internal/fakes"
	"jobpolicy.dev/executor/internal/limit"
	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/tracker"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func settled(req *jobpolicyv1.DecideJobRequest, requeue time.Duration) *jobpolicyv1.DecideJobResponse {
	d := &jobpolicyv1.DecideJobResponse{RequestId: req.GetRequestId(), Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}
	if requeue > 0 {
		d.RequeueTime = timestamppb.New(req.GetNow().AsTime().Add(requeue))
	}
	return d
}

// There is something to do for a Job, and no event has said so. Within two periods the
// check for missed reconciles finds the Job, counts it, logs it, and enqueues it if it is allowed to.
func TestAMissedReconcileIsFound(t *testing.T) {
	due := func(req *jobpolicyv1.DecideJobRequest) bool { return req.GetNow().AsTime().Minute() >= 3 }
	cases := map[string]func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error){
		"a pod is to be created": func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
			if !due(req) {
				return settled(req, 0), nil
			}
			return creatingOnce(req)
		},
		"a time is near that is not planned for": func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
			if !due(req) {
				return settled(req, 0), nil
			}
			if req.GetNow().AsTime().Minute() < 30 {
				return settled(req, time.Minute), nil
			}
			return creatingOnce(req)
		},
	}
	for name, decide := range cases {
		for _, reportsOnly := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				server, log := newServer(testJob()), &bytes.Buffer{}
				cfg, registry := testConfig(server, &script{Otherwise: decide}), prometheus.NewRegistry()
				cfg.Registerer, cfg.MissedReconcilesReportOnly, cfg.Logger = registry, reportsOnly, slog.New(slog.NewTextHandler(log, nil))
				runFor(t, cfg, 35*time.Minute)
				missed := samples(t, registry, "jobpolicy_missed_reconciles_total")["{}"]
				if reportsOnly && missed < 2 || !reportsOnly && missed != 1 {
					t.Errorf("missed reconciles: %v", missed)
				}
				if got := strings.Count(log.String(), `level=WARN msg="`+telemetry.LogMissedReconcile+`"`); got != int(missed) {
					t.Errorf("%d log lines about %v missed reconciles", got, missed)
				}
				if helped := slices.Contains(server.Done(), "create pods"); helped == reportsOnly {
					t.Errorf("the pod was created: %t, with the check only reporting: %t", helped, reportsOnly)
				}
			})
		}
	}
}

// A Job is deleted while the watch of Jobs is broken. The API server says that the Job does not
// exist, and then nothing is missed, whatever the cached Job asks for.
func TestAJobThatDoesNotExistMissesNothing(t *testing.T) {
	server := newServer(testJob())
	server.Failures["update jobs/status"] = func(int) error {
		return apierrors.NewNotFound(batchv1.Resource("jobs"), testJob().Name)
	}
	decider := &script{Otherwise: finishing}
	cfg, registry := testConfig(server, decider), prometheus.NewRegistry()
	cfg.Registerer = registry
	runFor(t, cfg, time.Hour)
	if missed := samples(t, registry, "jobpolicy_missed_reconciles_total"); len(missed) > 0 {
		t.Errorf("missed reconciles: %v", missed)
	}
	if asked := len(decider.Requests()); asked > 1 {
		t.Errorf("asked %d times about a Job that does not exist, want once", asked)
	}
}

// resting answers that nothing is to be done before a time has passed; 0 is for ever.
func resting(requeue time.Duration) reply {
	return func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		return settled(req, requeue), nil
	}
}

// breaking answers that nothing is to be done, and from the first minute on spoils that answer.
func breaking(spoil func(*jobpolicyv1.DecideJobResponse)) reply {
	return func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		d := settled(req, 0)
		if req.GetNow().AsTime().Minute() >= 1 {
			spoil(d)
		}
		return d, nil
	}
}

// The check does not report a Job with nothing to do, nor one that waits for a time,
// backs off or is being reconciled. It costs one question to the engine in a period, and no
// request to the API server.
func TestNoReconcileIsMissedWhereNothingIsToDo(t *testing.T) {
	const apply = jobpolicyv1.Disposition_DISPOSITION_APPLY
	cases := map[string]struct {
		decide   reply
		wantMost int // questions in an hour
	}{
		"at rest":                   {decide: resting(0), wantMost: 1 + 6},
		"a deadline is planned for": {decide: resting(25 * time.Minute), wantMost: 3 + 6},
		"a deadline is far ahead":   {decide: resting(25 * time.Hour), wantMost: 2 + 6},
		"the engine is away":        {decide: failing(codes.Unavailable, "away"), wantMost: 1 + 3600/2}, // One Job of all is asked about every two seconds.
		"the engine has no answer":  {decide: failing(codes.DeadlineExceeded, "too slow"), wantMost: 75},
		"the answers break the contract": {
			decide:   breaking(func(d *jobpolicyv1.DecideJobResponse) { d.Disposition = 99 }),
			wantMost: 1 + 6,
		},
		"the answers are to other requests": {
			decide:   breaking(func(d *jobpolicyv1.DecideJobResponse) { d.RequestId, d.Disposition = "another", apply }),
			wantMost: 1 + 6,
		},
		"the answers have a field that nobody knows": {
			decide: breaking(func(d *jobpolicyv1.DecideJobResponse) {
				d.Disposition = apply
				d.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1))
			}),
			wantMost: 1 + 6,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server, reads := newServer(testJob()), 0
			server.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
				if a.GetVerb() == "get" || a.GetVerb() == "list" {
					reads++
				}
				return false, nil, nil
			})
			decider := &script{Otherwise: tc.decide}
			cfg, registry := testConfig(server, decider), prometheus.NewRegistry()
			cfg.Registerer, cfg.APIBackoff, cfg.MaxAPIBackoff = registry, time.Second, time.Minute
			runFor(t, cfg, time.Hour)
			if missed := samples(t, registry, "jobpolicy_missed_reconciles_total"); len(missed) > 0 {
				t.Errorf("missed reconciles: %v", missed)
			}
			if len(decider.Requests()) > tc.wantMost {
				t.Errorf("asked %d times, want at most %d", len(decider.Requests()), tc.wantMost)
			}
			if writes := server.Done(); len(writes) > 0 || (name == "at rest" && reads > 2) {
				t.Errorf("%d reads, which the informers' two lists are part of; writes %v", reads, writes)
			}
		})
	}
}

// Looks are spread over the period.
func TestLooksAreSpread(t *testing.T) {
	var turns [60]int
	for n := range 6000 {
		turns[checkTurn(testUID(n), len(turns))]++
	}
	if most, least := slices.Max(turns[:]), slices.Min(turns[:]); most > 200 || least < 30 {
		t.Errorf("of 6000 Jobs, between %d and %d have their turn at once", least, most)
	}
}

// If the clock is set forward beyond the time for which a reconcile is planned, the Job is
// reconciled without waiting.
func TestAClockSetForwardIsNoticed(t *testing.T) {
	clock := &fakes.Clock{}
	var asked []time.Duration
	begun := time.Time{}
	decider := &script{Otherwise: func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		if begun.IsZero() {
			begun = time.Now()
		}
		asked = append(asked, time.Since(begun).Truncate(checkStep))
		return settled(req, 9*time.Minute), nil
	}}
	cfg := testConfig(newServer(testJob()), decider)
	cfg.Now = clock.Now
	inBubble(t, cfg, nil, func(t *testing.T, _ *Executor) {
		time.Sleep(time.Minute - checkStep/2) // Not in the moment of a look.
		clock.Set(time.Hour)
		time.Sleep(time.Minute)
		clock.Set(-2 * time.Hour)
		time.Sleep(time.Minute)
		synctest.Wait()
	})
	if diff := cmp.Diff([]time.Duration{0, time.Minute}, asked); diff != "" {
		t.Errorf("asked after (-want +got):\n%s", diff)
	}
}

// It reads what is remembered of a Job, of which workers may learn more meanwhile: the race detector
// finds what has no lock.
func TestTheCheckReadsWhatReconcilesChange(t *testing.T) {
	answers := &script{Otherwise: func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		return settled(req, 0), nil
	}}
	e := build(t, testConfig(newServer(), answers))
	job := testJob()
	job.ResourceVersion = "1"
	s := tracker.New(tracker.KeyOf(job), limit.NewPool(limit.Config{Total: 8, PerJob: 8}))
	s.Observe(job, tracker.Watch)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			s.StatusWritten(time.Second)
			s.RowsRefused(2000, 1000)
			s.RowsAccepted(500, 1000)
		}
	}()
	for range 20 {
		if _, _, err := e.decider.decide(t.Context(), s, toCheck); err != nil {
			t.Fatal(err)
		}
	}
	<-done
}
