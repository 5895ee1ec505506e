package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine/snapshot"
	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/program"
)

// Each of these callers is wrong in one thing, except the first.
func TestCallers(t *testing.T) {
	cases := map[string]struct {
		flaw string
		want string // The check that finds it; "": none does.
	}{
		"it does everything right":               {"", ""},
		"it sends no time":                       {"no time", checkRequests},
		"it changes the status":                  {"other status", checkStatus},
		"it creates a pod too many":              {"one more", checkCreate},
		"it releases every pod that ends":        {"releases at once", checkRelease},
		"it releases although the write failed":  {"releases unwritten", checkOrder},
		"it gives up when an answer is lost":     {"gives up", checkLost},
		"it takes the answer to another request": {"any id", checkForeign},
		"it ignores fields that it does not know": {
			"any field", checkField,
		},
		"it ignores a disposition that it does not know": {"any disposition", checkDisposition},
		"it never confirms a release":                    {"no confirmation", checkEnd},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWatcher()
			for n := range 4 {
				play(watchedEngine{watcher: w}.DecideJob, n, tc.flaw)
			}
			found := ""
			for _, r := range w.results() {
				if r.problem != "" {
					t.Log(r.name, r.problem)
				}
				if r.problem != "" && (tc.want == "" || r.name == tc.want) {
					found = r.name
				}
			}
			if found != tc.want {
				t.Errorf("found %q, want %q", found, tc.want)
			}
		})
	}
}

// The command watches a caller over the network.
func TestCommandCaller(t *testing.T) {
	junit := filepath.Join(t.TempDir(), "results.xml")
	printed, stdout := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(t.Context(), []string{"caller", "--listen=127.0.0.1:0", "--insecure", "--jobs=4", "--junit=" + junit}, stdout, stdout)
		_ = stdout.Close()
	}()
	lines := bufio.NewScanner(printed)
	lines.Scan()
	address := strings.Fields(lines.Text())[7]
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatalf("%v in the line %q", err, lines.Text())
	}
	defer conn.Close()
	client := jobpolicyv1grpc.NewPolicyServiceClient(conn)
	for n := range 4 {
		play(func(ctx context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
			return client.DecideJob(ctx, req)
		}, n, "")
	}
	var table strings.Builder
	for lines.Scan() {
		fmt.Fprintln(&table, lines.Text())
	}
	if code := <-ended; code != program.ExitOK {
		t.Errorf("exit status %d:\n%s", code, table.String())
	}
	if suites := readJUnit(t, junit); suites.Suites[0].Tests != len(callerChecks) {
		t.Errorf("%d tests, want %d", suites.Suites[0].Tests, len(callerChecks))
	}
}

func TestUnfinishedJobsFail(t *testing.T) {
	var out bytes.Buffer
	if code := run(t.Context(), []string{"caller", "--listen=127.0.0.1:0", "--insecure", "--timeout=1ms"}, &out, &out); code != program.ExitFailed || !strings.Contains(out.String(), "0 of 1 Jobs came to their end") {
		t.Errorf("exit status %d:\n%s", code, out.String())
	}
}

// play is a caller whose tasks are values. It runs a Job of three tasks, of which the
// first fails; every third write of the status fails.
func play(ask func(context.Context, *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error), n int, flaw string) {
	spec := &jobpolicyv1.JobSpec{Parallelism: 2, Completions: new(int32(3)), BackoffLimit: 3}
	status, now := &jobpolicyv1.JobStatus{}, time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var pods []snapshot.Pod
	for step := range 60 {
		now = now.Add(time.Minute)
		request := snapshot.Request(spec, status, pods, snapshot.Options{})
		request.RequestId, request.Now = fmt.Sprint(n, "-", step), timestamppb.New(now)
		request.Job = &jobpolicyv1.JobRef{Uid: []byte(fmt.Sprint("job", n)), Name: fmt.Sprint("job", n)}
		switch flaw {
		case "no time":
			request.Now = nil
		case "no confirmation":
			request.ConfirmedReleases = nil
		}
		decision, err := ask(context.Background(), request)
		if err != nil && flaw == "gives up" {
			return
		}
		if err != nil || !accepts(flaw, request, decision) {
			continue
		}
		create := int(decision.GetCreate().GetCount())
		if create > 0 && flaw == "one more" {
			create++
		}
		for range create {
			pods = append(pods, snapshot.Pod{
				UID: []byte(fmt.Sprintf("%8d%8d", n, len(pods))), Phase: jobpolicyv1.PodPhase_POD_PHASE_RUNNING, Tracked: true, Created: now,
			})
		}
		written := step%3 != 2
		if written && decision.GetStatus() != nil {
			status = decision.GetStatus()
			if flaw == "other status" {
				status.Failed++
			}
		}
		for i := range pods {
			isReleased := func(uid []byte) bool { return bytes.Equal(uid, pods[i].UID) }
			if (written || flaw == "releases unwritten") && slices.ContainsFunc(decision.GetRelease(), isReleased) {
				pods[i].Tracked = false
			}
		}
		end(pods, now, flaw)
	}
}

// accepts reports whether a caller carries an answer out.
func accepts(flaw string, request *jobpolicyv1.DecideJobRequest, decision *jobpolicyv1.DecideJobResponse) bool {
	switch flaw {
	case "any id":
		decision.RequestId = request.RequestId
	case "any field":
		decision.ProtoReflect().SetUnknown(nil)
	case "any disposition":
		decision.Disposition = jobpolicyv1.Disposition_DISPOSITION_APPLY
	}
	return answer.Check(request, decision) == nil
}

// end ends one of the tasks that run.
func end(pods []snapshot.Pod, now time.Time, flaw string) {
	for i := range pods {
		p := &pods[i]
		if p.Phase != jobpolicyv1.PodPhase_POD_PHASE_RUNNING {
			continue
		}
		p.Phase, p.Finished = jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED, now
		if i == 0 {
			p.Phase = jobpolicyv1.PodPhase_POD_PHASE_FAILED
		}
		p.Tracked = flaw != "releases at once" || i%2 == 0
		return
	}
}
