package debugpages

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"jobpolicy.dev/executor/cronjob"
)

// CronJobs is the controller of CronJobs, package executor/cronjob.
type CronJobs interface {
	EachCronJob(f func(cronjob.Observation))
	TableHandler() http.Handler
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
}

// CronJobTable answers GET with the managed CronJobs: as a table in plain text, or, if the
// query has format=json, as a list. The query may select a namespace and a name.
func CronJobTable(crons CronJobs) http.Handler {
	text := crons.TableHandler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		err := refused(query, byNamespace, byName, asFormat)
		format := query.Get(asFormat)
		switch {
		case err != nil:
		case format == "" && (query.Has(byNamespace) || query.Has(byName)):
			err = fmt.Errorf("%s and %s need format=json", byNamespace, byName)
		case format != "" && format != "json":
			err = fmt.Errorf("format must be json or be left out, is %q", format)
		}
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
		case format == "json":
			writeJSON(w, cronJobs(crons, query))
		default:
			text.ServeHTTP(w, r)
		}
	})
}

func cronJobs(crons CronJobs, query url.Values) []cronJobJSON {
	list := []cronJobJSON{}
	crons.EachCronJob(func(o cronjob.Observation) {
		if matches(query, o.CronJob.Namespace, o.CronJob.Name) {
			list = append(list, cronJobOf(o))
		}
	})
	slices.SortFunc(list, func(a, b cronJobJSON) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return list
}

func cronJobOf(o cronjob.Observation) cronJobJSON {
	zone := o.Zone
	if o.CronJob.Spec.TimeZone != nil {
		zone = *o.CronJob.Spec.TimeZone
	}
	row := cronJobJSON{
		Namespace: o.CronJob.Namespace, Name: o.CronJob.Name, UID: string(o.CronJob.UID), Schedule: o.CronJob.Spec.Schedule,
		TimeZone: cmp.Or(zone, "UTC"), Suspended: o.Suspended, Active: len(o.CronJob.Status.Active), Reason: o.Explanation.GetSummary(),
	}
	if last := o.CronJob.Status.LastScheduleTime; last != nil {
		at := last.UTC()
		row.Last = &at
	}
	if next := o.Explanation.GetNextScheduleTime(); next != nil {
		at := next.AsTime()
		row.Next = &at
	}
	return row
}
