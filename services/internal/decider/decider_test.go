package decider_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/executor"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/decider"
	"jobpolicy.dev/services/internal/testengine"
	"jobpolicy.dev/services/internal/testenv"
)

// long is a timeout that no test should reach.
const long = 20 * time.Second

func newRemote(t *testing.T, target string, change func(*decider.RemoteConfig)) *decider.Remote {
	t.Helper()
	cfg := decider.RemoteConfig{
		Target: target, Credentials: insecure.NewCredentials(), TracerProvider: noop.NewTracerProvider(), Timeout: long,
	}
	if change != nil {
		change(&cfg)
	}
	r, err := decider.NewRemote(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func newEmbedded(t *testing.T, decide func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error)) *decider.Embedded {
	t.Helper()
	j, err := decider.NewEmbedded(decider.EmbeddedConfig{
		TracerProvider: noop.NewTracerProvider(), Registerer: prometheus.NewRegistry(),
		Logger: (&testenv.Log{}).Logger(), Decide: decide,
	})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func freeAddress(t *testing.T) string {
	t.Helper()
	lis := testenv.Listen(t)
	defer lis.Close()
	return lis.Addr().String()
}

func TestRemoteAndEmbeddedAnswerAlike(t *testing.T) {
	invalid := testenv.Snapshot()
	invalid.Spec.Parallelism, invalid.Now = -1, nil
	newer := testenv.Snapshot()
	newer.Spec.ProtoReflect().SetUnknown([]byte("\xfa\x7f\x01x"))
	suspended := testenv.Snapshot()
	suspended.Spec.Suspend = true
	panicking := testenv.Snapshot()
	panicking.RequestId = "panic"
	decide := func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		if req.GetRequestId() == "panic" {
			panic("as asked")
		}
		return engine.DecideJob(req)
	}
	remote := newRemote(t, testengine.Start(t, testengine.Config{Decide: decide}).Address, nil)
	embedded := newEmbedded(t, decide)

	cases := map[string]struct {
		req  *jobpolicyv1.DecideJobRequest
		want codes.Code
	}{
		"a new job":                {testenv.Snapshot(), codes.OK},
		"a job that fails":         {testenv.FailedSnapshot(), codes.OK},
		"a suspended job":          {suspended, codes.OK},
		"an invalid request":       {invalid, codes.InvalidArgument},
		"a request of a newer API": {newer, codes.Unimplemented},
		"a defect":                 {panicking, codes.Internal},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fromRemote, remoteErr := remote.DecideJob(t.Context(), tc.req)
			fromEmbedded, embeddedErr := embedded.DecideJob(t.Context(), tc.req)
			if got := status.Code(remoteErr); got != tc.want {
				t.Fatalf("remote code = %s, want %s (%v)", got, tc.want, remoteErr)
			}
			if diff := cmp.Diff(status.Convert(remoteErr).Proto(), status.Convert(embeddedErr).Proto(), protocmp.Transform()); diff != "" {
				t.Errorf("statuses (-remote +embedded):\n%s", diff)
			}
			if a, b := encode(t, fromRemote), encode(t, fromEmbedded); a != b {
				t.Errorf("answers have other bytes:\n remote %x\n embedded %x", a, b)
			}
		})
	}
}

func encode(t *testing.T, m *jobpolicyv1.DecideJobResponse) string {
	t.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRemoteAndEmbeddedAnswerAlikeOnCronJobs(t *testing.T) {
	remote, embedded := newRemote(t, testengine.Start(t, testengine.Config{}).Address, nil), newEmbedded(t, nil)
	invalid := testenv.CronJobSnapshot()
	invalid.Now, invalid.CronJob.Uid = nil, nil
	newer := testenv.CronJobSnapshot()
	newer.Spec.ProtoReflect().SetUnknown([]byte("\xfa\x7f\x01x")) // number 2047, one byte
	for name, req := range map[string]*jobpolicyv1.DecideCronJobRequest{
		"a decision": testenv.CronJobSnapshot(), "an invalid request": invalid, "a newer contract": newer,
	} {
		t.Run(name, func(t *testing.T) {
			r, rErr := remote.DecideCronJob(t.Context(), req)
			e, eErr := embedded.DecideCronJob(t.Context(), req)
			if diff := cmp.Diff(e, r, protocmp.Transform()); diff != "" {
				t.Errorf("decisions (-embedded +remote):\n%s", diff)
			}
			if diff := cmp.Diff(status.Convert(eErr).Proto(), status.Convert(rErr).Proto(), protocmp.Transform()); diff != "" {
				t.Errorf("errors (-embedded +remote):\n%s", diff)
			}
		})
	}
}

func TestRemoteWaitsForAnEngineThatStarts(t *testing.T) {
	listener := testenv.Listen(t)
	refused := make(chan struct{}, 100)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close() // there is no engine yet
			refused <- struct{}{}
		}
	}()
	address := listener.Addr().String()
	remote := newRemote(t, address, nil)
	answered := make(chan error, 1)
	go func() {
		_, err := remote.DecideJob(t.Context(), testenv.Snapshot())
		answered <- err
	}()
	// A call that does not wait fails with the first connection; the next one comes
	// after a back-off.
	<-refused
	<-refused
	select {
	case err := <-answered:
		t.Fatalf("answered before there is an engine: %v", err)
	default:
	}
	listener.Close()
	testengine.Start(t, testengine.Config{Address: address})
	if err := <-answered; err != nil {
		t.Errorf("DecideJob() = %v, want an answer", err)
	}
}

func TestRemoteFindsARestartedEngine(t *testing.T) {
	first := testengine.Start(t, testengine.Config{})
	remote := newRemote(t, first.Address, nil)
	if _, err := remote.DecideJob(t.Context(), testenv.Snapshot()); err != nil {
		t.Fatal(err)
	}
	first.Shutdown(long)
	testengine.Start(t, testengine.Config{Address: first.Address})
	if _, err := remote.DecideJob(t.Context(), testenv.Snapshot()); err != nil {
		t.Errorf("DecideJob() after the restart = %v, want an answer", err)
	}
}

func TestRemoteRepeatsACallThatBrokeOff(t *testing.T) {
	begun := make(chan struct{}, 1)
	forever := make(chan struct{})
	broken := testengine.Start(t, testengine.Config{Decide: func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		begun <- struct{}{}
		<-forever
		return nil, errors.New("cut off")
	}})
	remote := newRemote(t, broken.Address, nil)
	answered := make(chan error, 1)
	go func() {
		_, err := remote.DecideJob(t.Context(), testenv.Snapshot())
		answered <- err
	}()
	<-begun
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		broken.Shutdown(0)
	}()
	testenv.Eventually(t, func() error {
		conn, err := net.Dial("tcp", broken.Address)
		if err != nil {
			return nil // nobody listens any more
		}
		return errors.Join(errors.New("the port is still taken"), conn.Close())
	})
	testengine.Start(t, testengine.Config{Address: broken.Address})
	if err := <-answered; err != nil {
		t.Errorf("DecideJob() = %v, want the new engine's answer", err)
	}
	close(forever)
	<-stopped
}

func TestRemoteTellsAwayFromSlow(t *testing.T) {
	forever := make(chan struct{})
	slow := testengine.Start(t, testengine.Config{Decide: func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		<-forever
		return &jobpolicyv1.DecideJobResponse{}, nil
	}})
	t.Cleanup(func() { close(forever) })
	// The connection must be there before the call ends.
	_, err := newRemote(t, slow.Address, func(c *decider.RemoteConfig) { c.Timeout = 4 * time.Second }).DecideJob(t.Context(), testenv.Snapshot())
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a slow engine: %v, want DEADLINE_EXCEEDED", err)
	}
	away := freeAddress(t)
	_, err = newRemote(t, away, func(c *decider.RemoteConfig) { c.Timeout = 300 * time.Millisecond }).DecideJob(t.Context(), testenv.Snapshot())
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), away) {
		t.Errorf("an engine that is away: %v, want UNAVAILABLE that names %s", err, away)
	}
}

func TestRemoteHeedsTheCallersDeadline(t *testing.T) {
	remote := newRemote(t, freeAddress(t), func(c *decider.RemoteConfig) { c.Timeout = time.Hour })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := remote.DecideJob(ctx, testenv.Snapshot()); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("DecideJob() = %v, want DEADLINE_EXCEEDED", err)
	}
}

func TestRequestAboveTheLimitIsNotSent(t *testing.T) {
	remote := newRemote(t, testengine.Start(t, testengine.Config{}).Address, nil)
	req := testenv.Snapshot()
	req.RequestId = strings.Repeat("x", 17<<20)
	if _, err := remote.DecideJob(t.Context(), req); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("DecideJob() = %v, want RESOURCE_EXHAUSTED", err)
	}
}

func TestCheckFollowsTheEnginesHealth(t *testing.T) {
	srv := testengine.Start(t, testengine.Config{})
	remote := newRemote(t, srv.Address, nil)
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	if err := remote.Check(ctx); err != nil {
		t.Errorf("a serving engine: %v", err)
	}
	srv.Drain()
	testenv.Eventually(t, func() error {
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if remote.Check(short) == nil {
			return errors.New("a draining engine passes the check")
		}
		return nil
	})
}

// scripted answers with the error that it is told, or in its own name.
type scripted struct {
	name  string
	err   atomic.Pointer[error]
	calls atomic.Int32
}

func (s *scripted) fail(code codes.Code) {
	err := status.Error(code, "scripted")
	s.err.Store(&err)
}

func (s *scripted) DecideJob(context.Context, *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	s.calls.Add(1)
	if err := s.err.Load(); err != nil && *err != nil {
		return nil, *err
	}
	return &jobpolicyv1.DecideJobResponse{RequestId: s.name}, nil
}

func (s *scripted) DecideCronJob(ctx context.Context, _ *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
	resp, err := s.DecideJob(ctx, nil)
	if err != nil {
		return nil, err
	}
	return &jobpolicyv1.DecideCronJobResponse{RequestId: resp.GetRequestId()}, nil
}

func newFallback(t *testing.T, remote, embedded executor.Decider) *decider.Fallback {
	t.Helper()
	f, err := decider.NewFallback(remote, embedded, prometheus.NewRegistry(), (&testenv.Log{}).Logger())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFallbackOnlyWhenTheEngineIsAway(t *testing.T) {
	cases := map[codes.Code]string{ // who answers, empty: nobody
		codes.OK:                "remote",
		codes.Unavailable:       "embedded",
		codes.DeadlineExceeded:  "embedded",
		codes.InvalidArgument:   "",
		codes.Unimplemented:     "",
		codes.ResourceExhausted: "",
		codes.Internal:          "",
		codes.PermissionDenied:  "",
	}
	for code, want := range cases {
		t.Run(code.String(), func(t *testing.T) {
			remote, embedded := &scripted{name: "remote"}, &scripted{name: "embedded"}
			remote.fail(code)
			f := newFallback(t, remote, embedded)
			resp, err := f.DecideJob(t.Context(), testenv.Snapshot())
			if resp.GetRequestId() != want {
				t.Errorf("answered by %q, want %q", resp.GetRequestId(), want)
			}
			if want == "" && status.Code(err) != code {
				t.Errorf("error = %v, want %s", err, code)
			}
			cron, err := f.DecideCronJob(t.Context(), testenv.CronJobSnapshot())
			if cron.GetRequestId() != want || (want == "" && status.Code(err) != code) {
				t.Errorf("CronJob answered by %q, want %q; error = %v", cron.GetRequestId(), want, err)
			}
		})
	}
}

func TestFallbackDoesNotAnswerACallerThatIsGone(t *testing.T) {
	remote, embedded := &scripted{}, &scripted{}
	remote.fail(codes.DeadlineExceeded)
	f := newFallback(t, remote, embedded)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.DecideJob(gone, testenv.Snapshot()); status.Code(err) != codes.DeadlineExceeded || embedded.calls.Load() != 0 {
		t.Errorf("error = %v, embedded asked %d times; want the remote's error only", err, embedded.calls.Load())
	}
}

func TestFallbackLogsChangesOnce(t *testing.T) {
	remote := &scripted{}
	var log testenv.Log
	registry := prometheus.NewRegistry()
	f, err := decider.NewFallback(remote, &scripted{}, registry, log.Logger())
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []codes.Code{codes.OK, codes.Unavailable, codes.Unavailable, codes.DeadlineExceeded, codes.OK, codes.OK, codes.Unavailable} {
		remote.fail(code)
		if _, err := f.DecideJob(t.Context(), testenv.Snapshot()); err != nil {
			t.Fatal(err)
		}
	}
	if away, back := log.Count("engine away"), log.Count("engine back"); away != 2 || back != 1 {
		t.Errorf("logged away %d times and back %d times, want 2 and 1:\n%s", away, back, log.String())
	}
	const want = `
# HELP jobpolicy_executor_engine_fallback_active 1 while decisions are made in this process because the engine is away.
# TYPE jobpolicy_executor_engine_fallback_active gauge
jobpolicy_executor_engine_fallback_active 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestFallbackDoesNotWaitForAnEngineKnownToBeAway(t *testing.T) {
	remote := newRemote(t, freeAddress(t), func(c *decider.RemoteConfig) { c.FailFast = true; c.Timeout = time.Hour })
	f := newFallback(t, remote, newEmbedded(t, nil))
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	for range 20 {
		if _, err := f.DecideJob(ctx, testenv.Snapshot()); err != nil {
			t.Fatalf("DecideJob() = %v, want the embedded engine's answer", err)
		}
	}
}

func TestRemoteTellsWhichEngineDecided(t *testing.T) {
	e := testengine.Start(t, testengine.Config{})
	var answered []jobpolicyv1grpc.Build
	remote := newRemote(t, e.Address, func(cfg *decider.RemoteConfig) {
		cfg.Answered = func(b jobpolicyv1grpc.Build) { answered = append(answered, b) }
	})
	if _, err := remote.DecideJob(t.Context(), testenv.Snapshot()); err != nil {
		t.Fatal(err)
	}
	if len(answered) != 1 || answered[0].Version != "v0-test" || answered[0].RulesDigest == "" {
		t.Errorf("answered: %+v, want v0-test with a digest", answered)
	}
}
