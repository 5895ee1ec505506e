package views

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type jobs []executor.Observation

func (j jobs) EachJob(f func(executor.Observation)) {
	for _, o := range j {
		f(o)
	}
}

type crons []executor.CronJobObservation

func (c crons) EachCronJob(f func(executor.CronJobObservation)) {
	for _, o := range c {
		f(o)
	}
}

// decided is a Job that is decided on so long after noon.
func decided(t *testing.T, namespace, name string, after time.Duration, conditions ...batchv1.JobCondition) executor.Observation {
	t.Helper()
	text, err := proto.Marshal(&jobpolicyv1.Explanation{Summary: "as it is", Waits: []*jobpolicyv1.Wait{{}}})
	if err != nil {
		t.Fatal(err)
	}
	return executor.Observation{
		Job:      &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "u"}, Status: batchv1.JobStatus{Conditions: conditions}},
		Decision: &tracker.Decision{Time: noon.Add(after), Explanation: text},
	}
}

func get(t *testing.T, h http.Handler, query string) (code int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/debug/x"+query, nil))
	return w.Code, w.Body.String()
}

// names are those of a list, as namespace/name.
func names(t *testing.T, body string) []string {
	t.Helper()
	var list []struct{ Namespace, Name string }
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	found := []string{}
	for _, entry := range list {
		found = append(found, entry.Namespace+"/"+entry.Name)
	}
	return found
}

func condition(kind batchv1.JobConditionType, status corev1.ConditionStatus) batchv1.JobCondition {
	return batchv1.JobCondition{Type: kind, Status: status}
}

func TestDecisionsAreNarrowed(t *testing.T) {
	undecided := decided(t, "a", "new", 0)
	undecided.Decision = nil
	handler := Decisions(jobs{
		decided(t, "b", "x", 0, condition(batchv1.JobFailed, corev1.ConditionTrue)),
		decided(t, "a", "y", 0, condition(batchv1.JobSuspended, corev1.ConditionFalse)),
		decided(t, "a", "x", 0, condition(batchv1.JobSuspended, corev1.ConditionTrue)),
		undecided,
	})
	cases := map[string][]string{
		"":                               {"a/x", "a/y", "b/x"},
		"?namespace=a":                   {"a/x", "a/y"},
		"?name=x":                        {"a/x", "b/x"},
		"?namespace=b&name=x":            {"b/x"},
		"?namespace=b&name=y":            {},
		"?condition=Failed":              {"b/x"},
		"?condition=Suspended":           {"a/x"},
		"?condition=Failed&namespace=a":  {},
		"?condition=Suspended&namespace": {},
	}
	for query, want := range cases {
		code, body := get(t, handler, query)
		if diff := cmp.Diff(want, names(t, body)); code != http.StatusOK || diff != "" {
			t.Errorf("%s: %d (-want +got):\n%s", query, code, diff)
		}
	}
}

// A Job is found by its name however many were decided on since.
func TestOldDecisionsAreFoundByName(t *testing.T) {
	var many jobs
	for i := range maxListed + 1 {
		many = append(many, decided(t, "a", fmt.Sprint("job-", i), time.Duration(i)*time.Second))
	}
	_, all := get(t, Decisions(many), "")
	if found := names(t, all); len(found) != maxListed || strings.Contains(all, `"job-0"`) {
		t.Errorf("%d decisions are listed, want the newest %d", len(found), maxListed)
	}
	_, one := get(t, Decisions(many), "?name=job-0")
	if diff := cmp.Diff([]string{"a/job-0"}, names(t, one)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecisionsSayWhatIsKnown(t *testing.T) {
	o := decided(t, "a", "x", time.Second)
	o.Refusals, o.Hindered = []writes.Refusal{{Kind: writes.CreatePod, Since: time.Unix(0, 0), Objects: 1, Why: "exceeded quota"}}, tracker.Hindered{Pods: 2, Reason: "Unschedulable"}
	_, body := get(t, Decisions(jobs{o}), "")
	var list []map[string]any
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list) != 1 {
		t.Fatalf("%v in %s", err, body)
	}
	want := map[string]any{
		"namespace": "a", "name": "x", "uid": "u", "time": "2026-03-01T12:00:01Z", "rule": "", "reason": "as it is", "waiting": true,
		"explanation": map[string]any{"summary": "as it is", "waits": []any{map[string]any{}}}, "verdict": nil,
		"refused": []any{map[string]any{"write": "create_pod", "since": "1970-01-01T00:00:00Z", "objects": 1.0, "why": "exceeded quota"}}, "hindered": map[string]any{"pods": 2.0, "reason": "Unschedulable"},
	}
	if diff := cmp.Diff(want, list[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCronJobsAreAlsoJSON(t *testing.T) {
	zone := "Europe/Berlin"
	cron := func(namespace, name string) executor.CronJobObservation {
		return executor.CronJobObservation{CronJob: &batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "u"}, Spec: batchv1.CronJobSpec{Schedule: "0 3 * * *"},
		}}
	}
	nightly := cron("a", "nightly")
	nightly.CronJob.Spec.TimeZone, nightly.CronJob.Status.Active = &zone, make([]corev1.ObjectReference, 2)
	nightly.CronJob.Status.LastScheduleTime = &metav1.Time{Time: noon}
	nightly.Explanation = &jobpolicyv1.CronJobExplanation{Summary: "waits", NextScheduleTime: timestamppb.New(noon.Add(time.Hour))}
	handler := CronJobTable(crons{cron("b", "nightly"), nightly})

	table := `NAMESPACE   NAME      SCHEDULE    TIMEZONE        SUSPEND   ACTIVE   LAST SCHEDULE          NEXT SCHEDULE          WHY
a           nightly   0 3 * * *   Europe/Berlin   false     2        2026-03-01T12:00:00Z   2026-03-01T13:00:00Z   waits
b           nightly   0 3 * * *   UTC             false     0        -                      -                      not decided yet
`
	code, body := get(t, handler, "")
	if diff := cmp.Diff(table, body); diff != "" || code != http.StatusOK {
		t.Errorf("without a query: %d (-want +got):\n%s", code, diff)
	}
	if _, body := get(t, handler, "?namespace=b"); strings.Count(body, "nightly") != 1 || !strings.Contains(body, "UTC") {
		t.Errorf("of namespace b:\n%s", body)
	}
	_, all := get(t, handler, "?format=json")
	if diff := cmp.Diff([]string{"a/nightly", "b/nightly"}, names(t, all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, one := get(t, handler, "?format=json&namespace=a&name=nightly")
	want := `[{"namespace":"a","name":"nightly","uid":"u","schedule":"0 3 * * *","timeZone":"Europe/Berlin","suspended":false,"active":2,` +
		`"lastSchedule":"2026-03-01T12:00:00Z","nextSchedule":"2026-03-01T13:00:00Z","reason":"waits"}]`
	if diff := cmp.Diff(want, one); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestQueriesThatMeanNothingAreRefused(t *testing.T) {
	for query, tc := range map[string]struct {
		handler http.Handler
		want    string
	}{
		"?namespaces=a":     {Decisions(jobs{}), `unknown parameter "namespaces": there are namespace, name, condition`},
		"?condition=Failed": {CronJobTable(crons{}), `unknown parameter "condition": there are namespace, name, format`},
		"?format=yaml":      {CronJobTable(crons{}), `format must be json or be left out, is "yaml"`},
	} {
		if code, body := get(t, tc.handler, query); code != http.StatusBadRequest || strings.TrimSpace(body) != tc.want {
			t.Errorf("%s: %d %q, want 400 %q", query, code, body, tc.want)
		}
	}
}

// The API server takes times of the year 10000, and JSON does not.
func TestListsOfTimesThatJSONCannotHold(t *testing.T) {
	beyond := time.Date(10000, time.January, 1, 0, 0, 0, 0, time.UTC)
	o := executor.CronJobObservation{
		CronJob:     &batchv1.CronJob{Status: batchv1.CronJobStatus{LastScheduleTime: &metav1.Time{Time: beyond}}},
		Explanation: &jobpolicyv1.CronJobExplanation{NextScheduleTime: timestamppb.New(beyond)},
	}
	code, body := get(t, CronJobTable(crons{o}), "?format=json")
	if latest := `"9999-12-31T23:59:59Z"`; code != http.StatusOK || strings.Count(body, latest) != 2 {
		t.Errorf("%d: %s, want %s twice", code, body, latest)
	}
}
