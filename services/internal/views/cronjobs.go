package views

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"text/tabwriter"
	"time"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/services/internal/cronruns"
)

// CronJobs are the views of CronJobs, those of executor.Executor.
type CronJobs interface {
	EachCronJob(f func(executor.CronJobObservation))
}

type cronJobJSON struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Schedule  string `json:"schedule"`
	TimeZone  string `json:"timeZone"`
	Suspended bool   `json:"suspended"`
	// Active is how many of its Jobs run.
	Active int `json:"active"`
	// Last and Next are scheduled times; null: there is none.
	Last   *time.Time `json:"lastSchedule"`
	Next   *time.Time `json:"nextSchedule"`
	Reason string     `json:"reason"`
	// Refused are the writes that the API server refuses.
	Refused []refusedJSON `json:"refused,omitempty"`
}

// CronJobTable answers GET with the managed CronJobs, sorted by namespace and name: as a table
// in plain text, or, if the query has format=json, as a list. The query may select a namespace
// and a name.
func CronJobTable(crons CronJobs) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		err := refused(query, byNamespace, byName, asFormat)
		format := query.Get(asFormat)
		switch {
		case err != nil:
		case format != "" && format != "json":
			err = fmt.Errorf("format must be json or be left out, is %q", format)
		}
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
		case format == "json":
			writeJSON(w, cronJobs(crons, query))
		default:
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			writeTable(w, cronJobs(crons, query))
		}
	})
}

// writeTable writes schedule, last and next run, and the summary of the last decision.
func writeTable(out io.Writer, crons []cronJobJSON) {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "NAMESPACE\tNAME\tSCHEDULE\tTIMEZONE\tSUSPEND\tACTIVE\tLAST SCHEDULE\tNEXT SCHEDULE\tWHY")
	for _, c := range crons {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%v\t%d\t%s\t%s\t%s\n", c.Namespace, c.Name, c.Schedule, c.TimeZone, c.Suspended, c.Active,
			clock(c.Last), clock(c.Next), cmp.Or(c.Reason, "not decided yet"))
	}
	_ = w.Flush() // The reader may have gone away.
}

func clock(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return at.Format(time.RFC3339)
}

func cronJobs(crons CronJobs, query url.Values) []cronJobJSON {
	list := []cronJobJSON{}
	crons.EachCronJob(func(o executor.CronJobObservation) {
		if matches(query, o.CronJob.Namespace, o.CronJob.Name) {
			list = append(list, cronJobOf(o))
		}
	})
	slices.SortFunc(list, func(a, b cronJobJSON) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return list
}

func cronJobOf(o executor.CronJobObservation) cronJobJSON {
	row := cronJobJSON{
		Namespace: o.CronJob.Namespace, Name: o.CronJob.Name, UID: string(o.CronJob.UID), Schedule: o.CronJob.Spec.Schedule,
		TimeZone: cronruns.PlanOf(o.CronJob, o.Zone).Clock(), Suspended: o.Suspended, Active: len(o.CronJob.Status.Active), Reason: o.Explanation.GetSummary(), Refused: refusedOf(o.Refusals),
	}
	if last := o.CronJob.Status.LastScheduleTime; last != nil {
		row.Last = new(wire.Time(last.Time))
	}
	if next := o.Explanation.GetNextScheduleTime(); next != nil {
		row.Next = new(wire.Time(next.AsTime()))
	}
	return row
}
