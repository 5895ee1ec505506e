package jobcheck_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"jobpolicy.dev/services/internal/jobcheck"
	"jobpolicy.dev/services/internal/manifest"
)

// about are the findings of check on a CronJob that are about its schedule.
func about(schedule string) []string {
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: batchv1.CronJobSpec{Schedule: schedule, TimeZone: ptr.To("Europe/Berlin")}}
	var texts []string
	for _, f := range jobcheck.Check(&manifest.Object{Kind: "CronJob", CronJob: cron}) {
		if f.Path == "spec.schedule" {
			texts = append(texts, string(f.Severity)+" "+f.Check+": "+f.Text)
		}
	}
	return texts
}

// spellings are groups of texts of a field that select the same.
var spellings = [5][][]string{
	{{"*/7", "0-59/7", "0/7", "?/7", "0,7,14,21,28,35,42,49,56"}, {"1-59/7", "1/7", "1,8,15,22,29,36,43,50,57"}, {"*", "?", "0-59", "*/1"}, {"30", "30-30", "30/45"}, {"*/45", "0,45", "45,0"}, {"*/15", "0,15,30,45"}},
	{{"*/5", "0/5", "0,5,10,15,20"}, {"*", "?", "0-23"}, {"2", "02", "2-2"}, {"8,18", "18,8"}, {"*/6", "0,6,12,18"}},
	{{"*", "?", "*/1"}, {"13", "13-13"}, {"*/2", "1/2", "1-31/2"}, {"1-31", "1/1"}, {"30,31", "31,30", "30-31"}},
	{{"*", "jan-dec", "1-12", "JAN-Dec"}, {"2", "feb", "FEB-feb"}, {"*/5", "1,6,11", "jan/5", "jan,jun,nov"}, {"4,6,9,11", "apr,jun,sep,nov"}},
	{{"*", "?"}, {"5", "fri", "Fri-FRI"}, {"1-5", "mon-fri", "mon,2,3,4,fri"}, {"0-6", "sun-sat"}, {"*/2", "0,2,4,6"}},
}

var macros = [][]string{{"@hourly", "0 * * * *"}, {"@daily", "@midnight", "0 0 * * *", "0 0 ? * ?"}, {"@weekly", "0 0 * * 0", "0 0 * * sun"}, {"@monthly", "0 0 1 * *"}, {"@yearly", "@annually", "0 0 1 1 *"}}

// Two texts of one schedule get the same findings.
func TestScheduleIsJudgedByWhatItSelects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var texts [2]string
		if rapid.IntRange(0, 9).Draw(t, "macro") == 0 {
			group := rapid.SampledFrom(macros).Draw(t, "macro")
			texts = [2]string{rapid.SampledFrom(group).Draw(t, "one"), rapid.SampledFrom(group).Draw(t, "other")}
		} else {
			var fields [2][]string
			for _, groups := range spellings {
				group := rapid.SampledFrom(groups).Draw(t, "field")
				for i := range fields {
					fields[i] = append(fields[i], rapid.SampledFrom(group).Draw(t, "text"))
				}
			}
			texts = [2]string{strings.Join(fields[0], " "), strings.Join(fields[1], "  ")}
		}
		if diff := cmp.Diff(about(texts[0]), about(texts[1])); diff != "" {
			t.Fatalf("%q and %q (-first +second):\n%s", texts[0], texts[1], diff)
		}
	})
}

func TestScheduleFindings(t *testing.T) {
	cases := map[string][]string{
		"*/7 * * * *":             {"uneven-steps"},
		"*/7 3 * * *":             nil, // ends before the next hour of the schedule
		"*/15 * * * *":            nil,
		"0 */5 * * *":             {"uneven-steps"},
		"0 */5 * * 1":             nil, // the next day is not a day of the schedule
		"0 8,18 * * *":            nil, // meant
		"0 12 */2 * *":            {"uneven-steps"},
		"0 12 1,15 * *":           nil,
		"0 12 1 */5 *":            {"uneven-steps"},
		"0 12 * * 1,3,5":          nil,
		"0 12 13 * 5":             {"day-or-weekday"},
		"0 12 */10 * 5":           {"day-or-weekday", "uneven-steps"},
		"0 12 1-31 * 5":           {"day-or-weekday"},
		"0 12 ? * 5":              nil,
		"30 2 * * *":              {"clock-changes"},
		"30 2 * * 1":              nil, // clocks change on a Sunday
		"30 * * * 0":              nil, // every hour of that day
		"0 0 30 2 *":              {"schedule"},
		"0 0 31 4,6,9,11 *":       {"schedule"},
		"0 0 29 2 *":              nil,
		"@every 7m":               nil,
		"* 3 * * *":               {"every-minute"},
		"* 9-17 * * *":            nil, // may be meant
		"* * 10 * *":              {"every-minute"},
		"* * * * 1":               {"every-minute"},
		"* * * * *":               nil,
		"0-58 3 * * *":            nil,
		"*/90 * * * *":            {"wide-steps"},
		"30/61 * * * *":           {"wide-steps"},
		"0 0,*/25 * * *":          {"wide-steps"},
		"0 9 */31 * *":            {"wide-steps"},
		"0 9 1 */13 *":            {"wide-steps"},
		"0 9 * * 1/8":             {"wide-steps"},
		"*/60 * * * *":            nil, // each 60 minutes, as it says
		"0 */24 * * *":            nil,
		"0 9 1 */12 *":            nil,
		"0 9 * * 1/7":             nil,
		"30/45 9 * * *":           nil,
		", * * * *":               {"schedule"},
		"TZ=UTC 0 12 13 * 5":      {"schedule", "day-or-weekday"},
		"CRON_TZ=UTC */7 * * * *": {"schedule", "uneven-steps"},
	}
	for schedule, want := range cases {
		var got []string
		for _, text := range about(schedule) {
			name, _, _ := strings.Cut(text, ":")
			_, name, _ = strings.Cut(name, " ")
			got = append(got, name)
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", schedule, diff)
		}
	}
}
