package shadow

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/types"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func TestDifferencesOfAJob(t *testing.T) {
	zero, one := int32(0), int32(1)
	req := &jobpolicyv1.DecideJobRequest{Status: &jobpolicyv1.JobStatus{Active: 1, Ready: &zero}}
	apply := func(d *jobpolicyv1.DecideJobResponse) *jobpolicyv1.DecideJobResponse {
		d.Disposition = jobpolicyv1.Disposition_DISPOSITION_APPLY
		d.Explanation = &jobpolicyv1.Explanation{Summary: "because"}
		return d
	}
	cases := map[string]struct {
		d    *jobpolicyv1.DecideJobResponse
		want []Difference
	}{
		"settled": {&jobpolicyv1.DecideJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED, RequeueTime: timestamppb.New(noon)}, nil},
		"a pod":   {apply(&jobpolicyv1.DecideJobResponse{Create: &jobpolicyv1.CreatePods{Count: 1}}), []Difference{{CreatePods, "none", `{"count":1}`, "because"}}},
		"release": {apply(&jobpolicyv1.DecideJobResponse{Release: [][]byte{{1}}}), []Difference{{ReleasePods, "none", "the finalizers of 1 pods", "because"}}},
		"events":  {apply(&jobpolicyv1.DecideJobResponse{Events: []*jobpolicyv1.JobEvent{{}}}), nil},
		"the same status": {
			apply(&jobpolicyv1.DecideJobResponse{Status: &jobpolicyv1.JobStatus{Active: 1, Ready: &zero}}), nil,
		},
		"another status": {
			apply(&jobpolicyv1.DecideJobResponse{
				Status: &jobpolicyv1.JobStatus{Ready: &one, StartTime: timestamppb.New(noon)}, Verdict: &jobpolicyv1.Verdict{Rule: jobpolicyv1.Rule_RULE_BACKOFF_LIMIT_EXCEEDED},
			}),
			[]Difference{{WriteStatus, "backoffLimitExceeded", `startTime: absent, would be {"startTime":"2026-05-04T12:00:00Z"}; active: 1, would be 0; ready: 0, would be 1`, "because"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, OfJob(req, tc.d)); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDifferencesOfAFinishedJob(t *testing.T) {
	keep := &jobpolicyv1.DecideJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}
	if got := OfFinishedJob(keep); got != nil {
		t.Errorf("differences %v of a Job that is kept, want none", got)
	}
	want := []Difference{{DeleteJob, "none", "due since 2026-05-04T12:00:00Z", ""}}
	if diff := cmp.Diff(want, OfFinishedJob(&jobpolicyv1.DecideJobResponse{DeleteJob: &jobpolicyv1.DeleteJob{DueTime: timestamppb.New(noon)}})); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}

func TestDifferencesOfACronJob(t *testing.T) {
	req := &jobpolicyv1.DecideCronJobRequest{Status: &jobpolicyv1.CronJobStatus{}}
	got := OfCronJob(req, &jobpolicyv1.DecideCronJobResponse{
		Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY,
		Delete:      []*jobpolicyv1.DeleteJob{{Name: "cron-1"}},
		Create:      &jobpolicyv1.CreateJob{Name: "cron-2", ScheduledTime: timestamppb.New(noon)},
		Edits:       &jobpolicyv1.CronJobEdits{Suspend: true},
		Status:      &jobpolicyv1.CronJobStatus{LastScheduleTime: timestamppb.New(noon)},
	})
	want := []Difference{
		{DeleteJob, "none", "cron-1: DELETE_JOB_REASON_UNSPECIFIED", ""},
		{CreateJob, "none", "cron-2, scheduled for 2026-05-04T12:00:00Z", ""},
		{EditCronJob, "none", `{"suspend":true}`, ""},
		{WriteStatus, "none", `lastScheduleTime: absent, would be {"lastScheduleTime":"2026-05-04T12:00:00Z"}`, ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}

func newTestReport(t *testing.T, r prometheus.Registerer) *Report {
	t.Helper()
	report, err := NewReport(Config{Registerer: r, Logger: quiet.Logger, Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestMetricsCountComparisonsAndDifferences(t *testing.T) {
	registry := prometheus.NewRegistry()
	r := newTestReport(t, registry)
	o := Object{Type: TypeJob, Namespace: "ns", Name: "job", UID: "1"}
	r.asked(t.Context(), o, nil)
	r.asked(t.Context(), o, onePod.Differences)
	r.asked(t.Context(), o, onePod.Differences) // It lasts.
	r.gone(subject{TypeJob, "1"})
	o.UID = "2"
	r.asked(t.Context(), o, onePod.Differences)
	want := `
# HELP jobpolicy_shadow_comparisons_total Comparisons of objects, by result: same, or different if the engine would act.
# TYPE jobpolicy_shadow_comparisons_total counter
jobpolicy_shadow_comparisons_total{object="cronjob",result="different"} 0
jobpolicy_shadow_comparisons_total{object="cronjob",result="same"} 0
jobpolicy_shadow_comparisons_total{object="finished_job",result="different"} 0
jobpolicy_shadow_comparisons_total{object="finished_job",result="same"} 0
jobpolicy_shadow_comparisons_total{object="job",result="different"} 3
jobpolicy_shadow_comparisons_total{object="job",result="same"} 1
# HELP jobpolicy_shadow_differences_total Differences found: steps that the engine would take and the other controller has not, by the rule that decided.
# TYPE jobpolicy_shadow_differences_total counter
jobpolicy_shadow_differences_total{kind="create_job",object="cronjob",rule="none"} 0
jobpolicy_shadow_differences_total{kind="create_pods",object="job",rule="none"} 2
jobpolicy_shadow_differences_total{kind="delete_job",object="cronjob",rule="none"} 0
jobpolicy_shadow_differences_total{kind="delete_job",object="finished_job",rule="none"} 0
jobpolicy_shadow_differences_total{kind="delete_pods",object="job",rule="none"} 0
jobpolicy_shadow_differences_total{kind="edit_cronjob",object="cronjob",rule="none"} 0
jobpolicy_shadow_differences_total{kind="rejected",object="cronjob",rule="none"} 0
jobpolicy_shadow_differences_total{kind="rejected",object="finished_job",rule="none"} 0
jobpolicy_shadow_differences_total{kind="rejected",object="job",rule="none"} 0
jobpolicy_shadow_differences_total{kind="release_pods",object="job",rule="none"} 0
jobpolicy_shadow_differences_total{kind="write_status",object="cronjob",rule="none"} 0
jobpolicy_shadow_differences_total{kind="write_status",object="job",rule="none"} 0
# HELP jobpolicy_shadow_open_differences Differences that exist now.
# TYPE jobpolicy_shadow_open_differences gauge
jobpolicy_shadow_open_differences{kind="create_job",object="cronjob",rule="none"} 0
jobpolicy_shadow_open_differences{kind="create_pods",object="job",rule="none"} 1
jobpolicy_shadow_open_differences{kind="delete_job",object="cronjob",rule="none"} 0
jobpolicy_shadow_open_differences{kind="delete_job",object="finished_job",rule="none"} 0
jobpolicy_shadow_open_differences{kind="delete_pods",object="job",rule="none"} 0
jobpolicy_shadow_open_differences{kind="edit_cronjob",object="cronjob",rule="none"} 0
jobpolicy_shadow_open_differences{kind="rejected",object="cronjob",rule="none"} 0
jobpolicy_shadow_open_differences{kind="rejected",object="finished_job",rule="none"} 0
jobpolicy_shadow_open_differences{kind="rejected",object="job",rule="none"} 0
jobpolicy_shadow_open_differences{kind="release_pods",object="job",rule="none"} 0
jobpolicy_shadow_open_differences{kind="write_status",object="cronjob",rule="none"} 0
jobpolicy_shadow_open_differences{kind="write_status",object="job",rule="none"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestThePageListsDifferences(t *testing.T) {
	r := newTestReport(t, nil)
	r.asked(t.Context(), Object{Type: TypeJob, Namespace: "ns", Name: "first", UID: "1"}, []Difference{{CreatePods, "none", `{"count":1}`, "one is missing"}})
	r.asked(t.Context(), Object{Type: TypeCronJob, Namespace: "ns", Name: "second", UID: "2"}, []Difference{{CreateJob, "none", "second-1", "it is due"}})
	r.gone(subject{TypeCronJob, "2"})
	cases := map[string]struct {
		query string
		code  int
		want  string
	}{
		"table": {
			query: "", code: http.StatusOK,
			want: `OBJECT    NAMESPACE   NAME     WOULD         RULE   SINCE                  UNTIL                  DETAIL        WHY
job       ns          first    create_pods   none   2026-05-04T12:00:00Z   -                      {"count":1}   one is missing
cronjob   ns          second   create_job    none   2026-05-04T12:00:00Z   2026-05-04T12:00:00Z   second-1      it is due
`,
		},
		"json": {
			query: "?format=json", code: http.StatusOK,
			want: `[` +
				`{"object":"job","namespace":"ns","name":"first","uid":"1","kind":"create_pods","rule":"none","detail":"{\"count\":1}","why":"one is missing","since":"2026-05-04T12:00:00Z","until":null},` +
				`{"object":"cronjob","namespace":"ns","name":"second","uid":"2","kind":"create_job","rule":"none","detail":"second-1","why":"it is due","since":"2026-05-04T12:00:00Z","until":"2026-05-04T12:00:00Z"}]`,
		},
		"another format": {query: "?format=xml", code: http.StatusBadRequest, want: "format must be json or be left out, is \"xml\"\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			r.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/differences"+tc.query, nil))
			if diff := cmp.Diff(tc.want, w.Body.String()); diff != "" || w.Code != tc.code {
				t.Errorf("code %d, want %d; body (-want +got):\n%s", w.Code, tc.code, diff)
			}
		})
	}
}

// A cluster may have more differences than memory should hold. Those that last stay.
func TestTheListIsBounded(t *testing.T) {
	r := newTestReport(t, nil)
	r.asked(t.Context(), Object{Type: TypeJob, Name: "lasting", UID: "lasting"}, onePod.Differences)
	for n := range 2 * maxListed {
		o := Object{Type: TypeJob, Name: fmt.Sprint(n), UID: types.UID(fmt.Sprint(n))}
		r.asked(t.Context(), o, onePod.Differences)
		r.gone(o.subject())
	}
	list := r.Entries()
	if len(list) != maxListed || list[0].Name != "lasting" || list[1].Name != fmt.Sprint(2*maxListed-1) {
		t.Errorf("%d are listed, first %s, then %s; want %d, the lasting one, then the newest", len(list), list[0].Name, list[1].Name, maxListed)
	}
}

func TestAReadOnlyClientSendsNoWrite(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Method) }))
	defer server.Close()
	client := http.Client{Transport: ReadOnly(http.DefaultTransport)}
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL, strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		if refused := errors.Is(err, ErrReadOnly); refused != (method != http.MethodGet) {
			t.Errorf("%s: %v", method, err)
		}
	}
	if diff := cmp.Diff([]string{http.MethodGet}, got); diff != "" {
		t.Errorf("requests at the server (-want +got):\n%s", diff)
	}
}

// A Job is the object of two controllers when it has finished. What one of them need not look at
// any more, the other one does.
func TestADifferenceAboutAFinishedJobOutlivesThoseAboutTheJob(t *testing.T) {
	r := newTestReport(t, nil)
	job := Object{Type: TypeJob, Namespace: "ns", Name: "job", UID: "1"}
	finished := job
	finished.Type = TypeFinishedJob
	r.asked(t.Context(), finished, []Difference{{DeleteJob, "none", "job", "its time to live is over"}})
	r.gone(job.subject())
	if list := r.Entries(); len(list) != 1 || !list[0].Until.IsZero() {
		t.Errorf("differences %+v, want one that lasts", list)
	}
	r.gone(finished.subject())
	if list := r.Entries(); len(list) != 1 || list[0].Until.IsZero() {
		t.Errorf("differences %+v, want one that has ended", list)
	}
}
