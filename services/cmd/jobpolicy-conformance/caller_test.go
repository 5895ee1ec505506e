package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

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
		"it does everything right":                       {"", ""},
		"it sends no time":                               {"no time", checkRequests},
		"it changes the status":                          {"other status", checkStatus},
		"it creates a pod too many":                      {"one more", checkCreate},
		"it creates again after a lost answer":           {"creates again", checkCreate},
		"it releases every pod that ends":                {"releases at once", checkRelease},
		"it releases although the write failed":          {"releases unwritten", checkOrder},
		"it deletes and releases what it may not":        {"deletes unwritten", checkOrder},
		"it deletes a pod too many":                      {"deletes one more", checkDelete},
		"it writes although a creation failed":           {"ignores creation", checkFirst},
		"it writes although a deletion failed":           {"ignores deletion", checkFirst},
		"it gives up when an answer is lost":             {"gives up", checkLost},
		"it takes the answer to another request":         {"any id", checkOtherAnswer},
		"it ignores fields that it does not know":        {"any field", checkField},
		"it ignores a disposition that it does not know": {"any disposition", checkDisposition},
		"it creates what it wanted to create later":      {"early", checkDeferral},
		"it never confirms a release":                    {"no confirmation", checkEnd},
		"it does not come back after the retry delay":    {"no retry", checkEnd},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWatcher()
			for n := range jobs {
				play(inProcess(w.decide), n, tc.flaw)
			}
			assertFinds(t, w.results(), tc.want)
		})
	}
}

// inProcess asks without a network.
func inProcess(decide func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error)) func(context.Context, *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	return func(_ context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		return decide(req)
	}
}

// assertFinds checks that the check with this name fails; "": that none does.
func assertFinds(t *testing.T, results []result, want string) {
	t.Helper()
	found := ""
	for _, r := range results {
		if r.problem != "" {
			t.Log(r.name, r.problem)
		}
		if r.problem != "" && (want == "" || r.name == want) {
			found = r.name
		}
	}
	if found != want {
		t.Errorf("found %q, want %q", found, want)
	}
}

// The command watches a caller over the network.
func TestCommandCaller(t *testing.T) {
	junit := filepath.Join(t.TempDir(), "results.xml")
	printed, stdout := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(t.Context(), []string{"caller", "--listen=127.0.0.1:0", "--insecure", "--jobs=" + fmt.Sprint(jobs), "--silence=10ms", "--junit=" + junit}, stdout, stdout)
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
	for n := range jobs {
		play(func(ctx context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
			if n%2 == 0 {
				return client.DecideJob(ctx, req)
			}
			batch, err := client.DecideJobs(ctx, &jobpolicyv1.DecideJobsRequest{Requests: []*jobpolicyv1.DecideJobRequest{req}})
			if err != nil {
				return nil, err
			}
			result := batch.GetResults()[0]
			return result.GetDecision(), status.ErrorProto(result.GetError())
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
	if code := run(t.Context(), []string{"caller", "--listen=127.0.0.1:0", "--insecure", "--timeout=1ms", "--silence=0"}, &out, &out); code != program.ExitFailed || !strings.Contains(out.String(), "0 of 1 Jobs came to their end") {
		t.Errorf("exit status %d:\n%s", code, out.String())
	}
}

// The checks end when the Jobs are at rest and the caller is silent, and not before.
func TestACallerThatAsksOnIsWaitedFor(t *testing.T) {
	w, o := newWatcher(), &options{jobs: 1, silence: time.Hour}
	play(inProcess(w.decide), plainJob, "")
	if o.atRest(w) {
		t.Error("the caller has asked just now")
	}
	if o.silence = 0; !o.atRest(w) {
		t.Error("the Job is at its end, and no silence is wanted")
	}
	if o.jobs = 2; o.atRest(w) {
		t.Error("two Jobs are wanted")
	}
}
