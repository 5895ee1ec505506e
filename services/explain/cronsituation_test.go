package explain

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/engine/cronjob"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func TestTheZoneOfASchedule(t *testing.T) {
	for _, tc := range []struct {
		schedule, zone string
		timeZone       *string
		want           string
	}{
		{schedule: "0 6 * * *", want: "in UTC; spec.timeZone is not set"},
		{schedule: "0 6 * * *", zone: "Europe/Berlin", want: "in Europe/Berlin"},
		{schedule: "0 6 * * *", timeZone: ptr.To("Asia/Tokyo"), want: "in Asia/Tokyo"},
		{schedule: "TZ=America/New_York 0 6 * * *", want: "in America/New_York"},
		{schedule: "CRON_TZ=America/New_York 0 6 * * *", zone: "Europe/Berlin", want: "in America/New_York"},
	} {
		cron := &batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cron", UID: "00000000-0000-0000-0000-000000000001"},
			Spec:       batchv1.CronJobSpec{Schedule: tc.schedule, TimeZone: tc.timeZone},
		}
		report, err := ExplainCronJob(CronFacts{CronJob: cron, Zone: tc.zone, Now: time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)}, cronjob.Decide)
		if err != nil {
			t.Fatal(err)
		}
		if got := report.Settings[0]; got.Name != "schedule" || got.Meaning != tc.want {
			t.Errorf("%s: %v, want a schedule %s", tc.schedule, got, tc.want)
		}
	}
}

// A tool may write an owner reference with a version of CronJobs that was removed.
func TestARunIsTheCronJobsWhateverVersionItsOwnerReferenceHas(t *testing.T) {
	cron := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cron", UID: "00000000-0000-0000-0000-000000000001"},
		Spec:       batchv1.CronJobSpec{Schedule: "0 6 * * *"},
	}
	run := batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "run", UID: "00000000-0000-0000-0000-000000000002",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1beta1", Kind: "CronJob", Name: "cron", UID: cron.UID, Controller: ptr.To(true)}},
	}}
	if got := cronOwner(&run); got != "cron" {
		t.Errorf("the owner is %q, want cron", got)
	}
	report, err := ExplainCronJob(CronFacts{CronJob: cron, Jobs: []batchv1.Job{run}, Now: time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)}, cronjob.Decide)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.ByHand) != 1 || report.ByHand[0].Job != "run" {
		t.Errorf("Jobs by hand %v, want run", report.ByHand)
	}
}

// Another engine may answer with a rule that does not apply to the CronJob, with one that is not
// known here, or with none.
func TestARuleThatSaysNothing(t *testing.T) {
	for rule, want := range map[jobpolicyv1.Rule]string{
		jobpolicyv1.Rule_RULE_DELETING: "(deleting)", jobpolicyv1.Rule_RULE_STARTING_DEADLINE_PASSED: "(startingDeadlinePassed)",
		jobpolicyv1.Rule_RULE_RUN_DUE: "(runDue)", 9999: "(unknown)", jobpolicyv1.Rule_RULE_UNSPECIFIED: "(none)",
	} {
		cron := &batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cron", UID: "00000000-0000-0000-0000-000000000001"},
			Spec:       batchv1.CronJobSpec{Schedule: "0 6 * * *"},
		}
		report, err := ExplainCronJob(CronFacts{CronJob: cron, Now: time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)},
			func(*jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
				return &jobpolicyv1.DecideCronJobResponse{Explanation: &jobpolicyv1.CronJobExplanation{DecidingRule: rule}}, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		if report.State != Waiting || !strings.Contains(report.Headline, want) {
			t.Errorf("rule %s: %s: %s, want %s", rule, report.State, report.Headline, want)
		}
	}
}

func TestClockOfADeadlineThatNoDurationHolds(t *testing.T) {
	for seconds, want := range map[int64]string{
		0: "0s", 90: "1m30s", 9_223_372_036: "106751d23h47m16s",
		9_223_372_037: "9223372037 seconds", 1 << 54: "18014398509481984 seconds",
	} {
		if got := clock(seconds); got != want {
			t.Errorf("clock(%d) = %s, want %s", seconds, got, want)
		}
	}
}

// A CronJob is edited when its spec is: not when the executor publishes its next run, or somebody sets a label.
func TestWhenACronJobWasEdited(t *testing.T) {
	began := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	entry := func(manager, subresource, fields string, after time.Duration) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Subresource: subresource, Time: new(metav1.NewTime(began.Add(after))), FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		entry("kubectl-create", "", `{"f:spec":{"f:schedule":{}}}`, 0),
		entry("kubectl-edit", "", `{"f:spec":{"f:timeZone":{}}}`, time.Minute),
		entry("kubectl-label", "", `{"f:metadata":{"f:labels":{"f:team":{}}}}`, 2*time.Minute),
		entry(fieldManager, "", `{"f:metadata":{"f:annotations":{}},"f:spec":{"f:suspend":{}}}`, 3*time.Minute),
		entry("kube-controller-manager", "status", `{"f:status":{"f:lastScheduleTime":{}}}`, 4*time.Minute),
	}}}
	w := &cronWork{CronFacts: CronFacts{CronJob: cron}}
	if got, want := w.edited(), began.Add(time.Minute); !got.Equal(want) {
		t.Errorf("edited at %s, want %s", got, want)
	}
}
