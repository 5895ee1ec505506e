package cronjob

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// TableHandler serves a table of the managed CronJobs in plain text, sorted by
// namespace and name: schedule, last and next run, and the summary of the last decision.
func (c *Controller) TableHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			http.Error(w, "only GET is allowed", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if _, err := w.Write(table(c)); err != nil {
			c.cfg.Logger.DebugContext(r.Context(), "reader of the table went away", "error", err)
		}
	})
}

func table(c *Controller) []byte {
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "NAMESPACE\tNAME\tSCHEDULE\tTIMEZONE\tSUSPEND\tACTIVE\tLAST SCHEDULE\tNEXT SCHEDULE\tWHY")
	for _, r := range rows(c) {
		fmt.Fprintln(w, strings.Join(r, "\t"))
	}
	w.Flush() // a buffer takes everything
	return out.Bytes()
}

func rows(c *Controller) [][]string {
	var rows [][]string
	c.EachCronJob(func(o Observation) { rows = append(rows, row(o.CronJob, o.Suspended, o.Zone, o.Explanation)) })
	slices.SortFunc(rows, func(a, b []string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return rows
}

func row(cron *batchv1.CronJob, suspended bool, zone string, last *jobpolicyv1.CronJobExplanation) []string {
	if cron.Spec.TimeZone != nil {
		zone = *cron.Spec.TimeZone
	}
	return []string{
		cron.Namespace, cron.Name, cron.Spec.Schedule, cmp.Or(zone, "UTC"), fmt.Sprint(suspended), fmt.Sprint(len(cron.Status.Active)),
		when(cron.Status.LastScheduleTime), when(wire.APITime(last.GetNextScheduleTime())), cmp.Or(last.GetSummary(), "not decided yet"),
	}
}

func when(t *metav1.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
