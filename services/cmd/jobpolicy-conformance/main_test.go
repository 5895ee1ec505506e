package main

import (
	"bytes"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/testengine"
)

func TestOurEnginePasses(t *testing.T) {
	e := testengine.Start(t, testengine.Config{})
	printed, suites := try(t, e, cli.ExitOK)
	tests := 0
	for _, s := range suites {
		tests += s.Tests
		if s.Failures != 0 || len(s.Cases) != s.Tests {
			t.Errorf("suite %s: %d failures, %d of %d cases", s.Name, s.Failures, len(s.Cases), s.Tests)
		}
	}
	if tests < 200 || !strings.Contains(printed, "decide_job/backofflimit_never") {
		t.Errorf("%d tests; printed:\n%s", tests, printed)
	}
}

// try has the kit try an engine, and returns what it prints and the suites in its JUnit file.
func try(t *testing.T, e *testengine.Engine, wantCode int) (printed string, suites []junitSuite) {
	t.Helper()
	junit := filepath.Join(t.TempDir(), "results.xml")
	var out bytes.Buffer
	if code := run(t.Context(), []string{"--address", e.Address, "--engine-insecure", "--junit", junit}, cli.IO{Out: &out, Err: &out}); code != wantCode {
		t.Fatalf("exit status %d:\n%s", code, out.String())
	}
	return out.String(), readJUnit(t, junit).Suites
}

// Each of these engines is wrong in one thing.
func TestWrongEnginesFail(t *testing.T) {
	type decide = func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error)
	changed := func(change func(*jobpolicyv1.DecideJobResponse)) decide {
		return func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
			resp, err := engine.DecideJob(req)
			if err == nil {
				change(resp)
			}
			return resp, err
		}
	}
	asked := 0
	cases := map[string]struct {
		decide decide
		want   string
	}{
		"it releases nothing": {
			decide: changed(func(r *jobpolicyv1.DecideJobResponse) { r.Release = nil }),
			want:   "decide_job/ledger_protocol, line",
		},
		"it has no events": {
			decide: changed(func(r *jobpolicyv1.DecideJobResponse) { r.Events = nil }),
			want:   "decide_job/suspend_resume, line",
		},
		"it does not say when to ask": {
			decide: changed(func(r *jobpolicyv1.DecideJobResponse) { r.RequeueTime = nil }),
			want:   "decide_job/retry_delay, line",
		},
		"it creates one pod fewer": {
			decide: changed(func(r *jobpolicyv1.DecideJobResponse) { r.Create = nil }),
			want:   "decide_job/completions_fixed, line",
		},
		"it answers differently by turn": {
			decide: changed(func(r *jobpolicyv1.DecideJobResponse) { asked++; r.Explanation.Generation = int64(asked) }),
			want:   "another answer the second time\nfirst:  {",
		},
		"it has no answer the second time": {
			decide: func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
				if asked++; asked%2 == 0 {
					return nil, status.Error(codes.NotFound, "asked already")
				}
				return engine.DecideJob(req)
			},
			want: "no answer the second time: rpc error",
		},
		"it mends requests": {
			decide: func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
				req = proto.CloneOf(req)
				if req.Now == nil {
					req.Now = timestamppb.New(time.Unix(0, 0))
				}
				return engine.DecideJob(req)
			},
			want: "got an answer, want the error INVALID_ARGUMENT for now",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			assertFails(t, testengine.Start(t, testengine.Config{Decide: tc.decide}), tc.want)
		})
	}
}

// assertFails checks that the kit finds something wrong in the engine, and what it prints.
func assertFails(t *testing.T, e *testengine.Engine, want string) {
	t.Helper()
	printed, suites := try(t, e, cli.ExitNo)
	if !strings.Contains(printed, want) {
		t.Errorf("what was printed lacks %q", want)
	}
	failed := 0
	for _, s := range suites {
		failed += s.Failures
	}
	if failed == 0 {
		t.Error("the JUnit file has no failure")
	}
}

func TestCommandLine(t *testing.T) {
	cases := map[string]struct {
		args []string
		code int
		want string
	}{
		"help":       {args: []string{"--help"}, code: cli.ExitOK, want: "Usage:\n  jobpolicy-conformance --address"},
		"version":    {args: []string{"--version"}, code: cli.ExitOK, want: "jobpolicy-conformance version devel"},
		"no address": {code: cli.ExitUsage, want: "--address is required"},
		"a word":     {args: []string{"engine", "--address=x"}, code: cli.ExitUsage, want: `there are only flags, got ["engine"]`},
		"no time": {
			args: []string{"--address=x", "--timeout=0"}, code: cli.ExitUsage,
			want: "--timeout must be above 0",
		},
		"an unknown flag": {args: []string{"--adress=x"}, code: cli.ExitUsage, want: "--adress"},
		"nobody there": {
			args: []string{"--address=127.0.0.1:1", "--engine-insecure", "--timeout=100ms"},
			code: cli.ExitFailed,
			want: "GetServerInfo",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if code := run(t.Context(), tc.args, cli.IO{Out: &out, Err: &out}); code != tc.code || !strings.Contains(out.String(), tc.want) {
				t.Errorf("exit status %d, want %d; printed %q, want %q in it", code, tc.code, out.String(), tc.want)
			}
		})
	}
}

func readJUnit(t *testing.T, file string) (suites junitSuites) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = xml.Unmarshal(data, &suites)
	}
	if err != nil {
		t.Fatal(err)
	}
	return suites
}
