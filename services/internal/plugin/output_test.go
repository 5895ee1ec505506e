package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/engine/cronjob"
	"jobpolicy.dev/proto/conformance"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/jobcheck"
	"jobpolicy.dev/services/internal/refusal"
	"jobpolicy.dev/services/internal/testenv"
)

// Every command that tells something has json, yaml and wide. ui only opens a page.
func TestEveryCommandHasFormats(t *testing.T) {
	tried := 0
	for _, cmd := range newRoot(cli.IO{}).Commands() {
		if slices.Contains([]string{"ui", "help", "completion"}, cmd.Name()) {
			continue
		}
		tried++
		for _, format := range []string{"json", "yaml", "wide"} {
			if err := cmd.Flags().Set("output", format); err != nil {
				t.Errorf("%s -o %s: %v", cmd.Name(), format, err)
			}
		}
		if err := cmd.Flags().Set("output", "xml"); err == nil {
			t.Errorf("%s takes -o xml", cmd.Name())
		}
	}
	if tried < 9 {
		t.Errorf("%d commands were tried", tried)
	}
}

// The page of the command names, of what people misread, only checks that there are.
func TestThePageNamesChecks(t *testing.T) {
	page := testenv.ReadFile(t, "../../../docs/kubectl.md")
	_, section, _ := strings.Cut(string(page), "### What people misread")
	section, _, _ = strings.Cut(section, "\n## ")
	known := map[string]bool{}
	for _, c := range jobcheck.Checks() {
		known[c.Name] = true
	}
	named := 0
	for line := range strings.Lines(section) {
		columns := strings.Split(line, "|")
		if len(columns) < 4 {
			continue
		}
		for i, part := range strings.Split(columns[3], "`") {
			if i%2 == 0 || strings.Contains(part, " ") {
				continue
			}
			if named++; part != "check" && !known[part] {
				t.Errorf("the page names a check %q, which is not there", part)
			}
		}
	}
	if named < 15 {
		t.Errorf("the page names %d checks", named)
	}
}

// finishedJob is one of two pods that ended an hour ago.
func finishedJob(outcome batchv1.JobConditionType) *batchv1.Job {
	started := metav1.NewTime(time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC))
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "backup", UID: "u", CreationTimestamp: started},
		Spec:       batchv1.JobSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"job-name": "backup"}}},
		Status: batchv1.JobStatus{StartTime: &started, Succeeded: 2, Conditions: []batchv1.JobCondition{{
			Type: outcome, Status: "True", Reason: "Because", Message: "it is so", LastTransitionTime: metav1.NewTime(started.Add(time.Minute)),
		}}},
	}
}

// lookOften lets wait look more often during a test.
func lookOften(t *testing.T) {
	t.Helper()
	before := waitEvery
	waitEvery = 10 * time.Millisecond
	t.Cleanup(func() { waitEvery = before })
}

// told runs a command about the Job.
func told(t *testing.T, api *testenv.API, args ...string) (code int, out string) {
	t.Helper()
	return run(t, append(args, "--kubeconfig", api.Kubeconfig, "-n", "ns")...)
}

// Wait tells programs how a Job ended, with the same exit codes.
func TestWaitForPrograms(t *testing.T) {
	for outcome, want := range map[batchv1.JobConditionType]int{batchv1.JobComplete: cli.ExitOK, batchv1.JobFailed: cli.ExitNo} {
		code, out := told(t, testenv.StartAPI(t, finishedJob(outcome)), "wait", "job/backup", "-o", "json")
		var report struct {
			Job, Reason string
			Outcome     batchv1.JobConditionType
			Status      batchv1.JobStatus
		}
		if err := json.Unmarshal([]byte(out), &report); err != nil || code != want {
			t.Fatalf("%s: exit code %d, error %v:\n%s", outcome, code, err, out)
		}
		if report.Job != "backup" || report.Outcome != outcome || report.Reason != "Because" || report.Status.Succeeded != 2 {
			t.Errorf("%s: %+v", outcome, report)
		}
	}
}

// A Job that is deleted while it is waited for gives no answer: exit code 3. So does another
// one of its name.
func TestWaitForAJobThatIsDeleted(t *testing.T) {
	lookOften(t)
	for name, then := range map[string][]*batchv1.Job{"gone": nil, "another one": {func() *batchv1.Job {
		job := finishedJob(batchv1.JobComplete)
		job.UID = "another"
		return job
	}()}} {
		t.Run(name, func(t *testing.T) {
			job := finishedJob(batchv1.JobComplete)
			job.Status.Conditions = nil
			api := testenv.StartAPI(t, job)
			api.AfterRead(then...)
			code, out := told(t, api, "wait", "job/backup")
			if want := "job backup was deleted before it was seen to finish"; code != cli.ExitFailed || !strings.Contains(out, want) {
				t.Errorf("exit code %d, want %d and %q:\n%s", code, cli.ExitFailed, want, out)
			}
		})
	}
}

// A Job that is deleted right after its end, as with a time to live of 0, is seen to end by its
// events.
func TestWaitForAJobThatIsGoneAtItsEnd(t *testing.T) {
	lookOften(t)
	for reason, tc := range map[string]struct {
		code int
		want string
	}{
		"Completed":            {cli.ExitOK, "Complete after 1m: it is over (the Job has since been deleted)"},
		"BackoffLimitExceeded": {cli.ExitNo, "Failed after 1m: it is over (the Job has since been deleted)"},
		"FailedIndexes":        {cli.ExitNo, "Failed after 1m"},
		"SuccessfulCreate":     {cli.ExitFailed, "was deleted before it was seen to finish"},
	} {
		t.Run(reason, func(t *testing.T) {
			job := finishedJob(batchv1.JobComplete)
			job.Status.Conditions = nil
			api := testenv.StartAPI(t, job)
			api.AfterRead()
			api.Events = []corev1.Event{{
				InvolvedObject: corev1.ObjectReference{UID: job.UID}, Reason: reason, Message: "it is over",
				LastTimestamp: metav1.NewTime(job.CreationTimestamp.Add(time.Minute)),
			}}
			if code, out := told(t, api, "wait", "job/backup"); code != tc.code || !strings.Contains(out, tc.want) {
				t.Errorf("exit code %d, want %d and %q:\n%s", code, tc.code, tc.want, out)
			}
		})
	}
}

// The time of a condition is optional in the API.
func TestAnEndWithoutATime(t *testing.T) {
	job := finishedJob(batchv1.JobFailed)
	job.UID = "00000000-0000-0000-0000-000000000001"
	job.Status.Conditions[0].LastTransitionTime = metav1.Time{}
	api := testenv.StartAPI(t, job)
	for command, wantCode := range map[string]int{"explain": cli.ExitOK, "timeline": cli.ExitOK, "wait": cli.ExitNo} {
		if code, out := told(t, api, command, "job/backup"); code != wantCode || !strings.Contains(out, "it is so") {
			t.Errorf("%s: exit code %d, want %d:\n%s", command, code, wantCode, out)
		}
	}
}

// A message that another user wrote does not reach the terminal as a command.
func TestMessagesHoldNoControlCharacters(t *testing.T) {
	job := finishedJob(batchv1.JobFailed)
	job.UID = "00000000-0000-0000-0000-000000000001"
	job.Status.Conditions[0].Message = "it is \x1b[2Jso"
	api := testenv.StartAPI(t, job)
	for _, command := range []string{"explain", "timeline", "wait"} {
		if _, out := told(t, api, command, "job/backup"); !strings.Contains(out, "it is ^[[2Jso") {
			t.Errorf("%s: %q", command, out)
		}
	}
}

func TestTimelineForPrograms(t *testing.T) {
	code, out := told(t, testenv.StartAPI(t, finishedJob(batchv1.JobComplete)), "timeline", "job/backup", "-o", "json")
	var chart struct {
		Title  string
		Pods   []any
		Events []struct{ Text string }
	}
	if err := json.Unmarshal([]byte(out), &chart); err != nil || code != cli.ExitOK {
		t.Fatalf("exit code %d, error %v:\n%s", code, err, out)
	}
	if n := len(chart.Events); chart.Title != "Job ns/backup" || chart.Pods == nil || n != 3 || chart.Events[n-1].Text != "Complete (Because): it is so" {
		t.Errorf("%+v", chart)
	}
}

// A decision on a CronJob is a case of the kit, too.
func TestCaseOfACronJob(t *testing.T) {
	text, err := conformance.Files.ReadFile("decide_cron_job/replace.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	var want conformance.Case
	request := &jobpolicyv1.DecideCronJobRequest{}
	if err := errors.Join(json.Unmarshal(first, &want), protojson.Unmarshal(want.Request, request)); err != nil {
		t.Fatal(err)
	}
	response, err := cronjob.Decide(request)
	if err != nil {
		t.Fatal(err)
	}
	got := printedCase(t, &jobpolicyv1.DecisionRecord{
		Exchange: &jobpolicyv1.DecisionRecord_CronJob{CronJob: &jobpolicyv1.CronJobExchange{Request: request, Response: response}},
	})
	for _, part := range []struct {
		of        proto.Message
		got, want json.RawMessage
	}{
		{of: &jobpolicyv1.DecideCronJobRequest{}, got: got.Request, want: want.Request},
		{of: &jobpolicyv1.DecideCronJobResponse{}, got: got.Response, want: want.Response},
	} {
		wanted := proto.Clone(part.of)
		if err := errors.Join(protojson.Unmarshal(part.got, part.of), protojson.Unmarshal(part.want, wanted)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, part.of, protocmp.Transform()); diff != "" {
			t.Errorf("the case (-want +got):\n%s", diff)
		}
	}
}

// A request that the engine refuses for a field is a case, too.
func TestCaseOfARefusedRequest(t *testing.T) {
	request := &jobpolicyv1.DecideCronJobRequest{RequestId: "r"}
	_, err := cronjob.Decide(request)
	if err == nil {
		t.Fatal("an empty request is decided")
	}
	got := printedCase(t, &jobpolicyv1.DecisionRecord{
		Exchange: &jobpolicyv1.DecisionRecord_CronJob{CronJob: &jobpolicyv1.CronJobExchange{Request: request}},
		Error:    status.Convert(refusal.FromEngine(err)).Proto(),
	})
	want := &conformance.Error{Code: "INVALID_ARGUMENT", Reason: "INVALID_REQUEST", Field: "now"}
	if diff := cmp.Diff(want, got.Error); diff != "" || got.Response != nil || !bytes.Contains(got.Request, []byte("requestId")) {
		t.Errorf("case %+v; its error (-want +got):\n%s", got, diff)
	}
}

// A call that failed for another reason is no case.
func TestNoCaseOfAnOverloadedEngine(t *testing.T) {
	record := &jobpolicyv1.DecisionRecord{
		Exchange: &jobpolicyv1.DecisionRecord_Job{Job: &jobpolicyv1.JobExchange{Request: &jobpolicyv1.DecideJobRequest{}}},
		Error:    status.New(codes.Unavailable, "draining").Proto(),
	}
	code, out := printCase(t, record)
	if want := "expected one with a response or with INVALID_ARGUMENT; the call failed: draining"; code != cli.ExitFailed || !strings.Contains(out, want) {
		t.Errorf("exit code %d, output %q, want %q", code, out, want)
	}
}

// printCase has replay print the only record of a log as a case.
func printCase(t *testing.T, record *jobpolicyv1.DecisionRecord) (code int, output string) {
	t.Helper()
	line, err := protojson.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "decisions.log")
	testenv.WriteFile(t, log, append(line, '\n'))
	return run(t, "replay", log, "--case", "1")
}

func printedCase(t *testing.T, record *jobpolicyv1.DecisionRecord) conformance.Case {
	t.Helper()
	code, out := printCase(t, record)
	var got conformance.Case
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != cli.ExitOK {
		t.Fatalf("exit code %d, error %v:\n%s", code, err, out)
	}
	return got
}
