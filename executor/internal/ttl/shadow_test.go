package ttl

import (
	"log/slog"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"jobpolicy.dev/executor/shadow"
)

// Whoever manages it: the built-in controller deletes every Job whose time to live is over.
func TestAShadowReportsAJobThatShouldBeGoneAndDeletesNothing(t *testing.T) {
	report, err := shadow.NewReport(shadow.Config{Rest: time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset(testJob())
	start(t, client, due(ended), func(c *Config) { c.Shadow, c.ManagedBy = report, "somebody else" })
	eventually(t, "the difference", func() bool { return len(report.Entries()) == 1 })
	if e := report.Entries()[0]; e.Kind != shadow.DeleteJob || e.Name != "job" || !e.Until.IsZero() {
		t.Errorf("difference %+v, want that the Job would be deleted, lasting", e)
	}
	if list := deletions(client); len(list) != 0 {
		t.Errorf("deletions %v, want none", list)
	}
	if err := client.BatchV1().Jobs("ns").Delete(t.Context(), "job", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its end with the Job", func() bool { return !report.Entries()[0].Until.IsZero() })
}
