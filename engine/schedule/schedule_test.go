package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jobpolicy.dev/engine/schedule"
	"jobpolicy.dev/engine/zone"
)

func parse(t testing.TB, text, zoneName string, opts schedule.Options) schedule.Schedule {
	t.Helper()
	loc, err := zone.Load(zoneName)
	if err != nil {
		t.Fatal(err)
	}
	s, err := schedule.Parse(text, loc, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func instant(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestClockChanges lists the times of one day around a change of the clock.
func TestClockChanges(t *testing.T) {
	const berlin, spring, autumn = "Europe/Berlin", "2026-03-28T23:00:00Z", "2026-10-24T22:00:00Z"
	after := schedule.Options{SkippedHour: schedule.RunAfter}
	first, last := schedule.Options{RepeatedHour: schedule.First}, schedule.Options{RepeatedHour: schedule.Last}
	cases := map[string]struct {
		text, zone, from string
		opts             schedule.Options
		want             string
	}{
		"a skipped time is left out":           {text: "30 2 * * *", zone: berlin, from: spring, want: ""},
		"a skipped time comes after the hour":  {text: "30 2 * * *", zone: berlin, from: spring, opts: after, want: "03:00+02"},
		"skipped times come as one":            {text: "*/20 2 * * *", zone: berlin, from: spring, opts: after, want: "03:00+02"},
		"the time after the hour comes once":   {text: "0 2,3 * * *", zone: berlin, from: spring, opts: after, want: "03:00+02"},
		"a time before the skipped hour stays": {text: "59 1 * * *", zone: berlin, from: spring, opts: after, want: "01:59+01 01:59+02"},
		"a repeated time comes twice":          {text: "30 2 * * *", zone: berlin, from: autumn, want: "02:30+02 02:30+01"},
		"the first of a repeated time":         {text: "30 2 * * *", zone: berlin, from: autumn, opts: first, want: "02:30+02"},
		"the last of a repeated time":          {text: "30 2 * * *", zone: berlin, from: autumn, opts: last, want: "02:30+01"},
		"the first, at the hour's edges":       {text: "0 2,3 * * *", zone: berlin, from: autumn, opts: first, want: "02:00+02 03:00+01"},
		"the last, at the hour's edges":        {text: "0 2,3 * * *", zone: berlin, from: autumn, opts: last, want: "02:00+01 03:00+01"},
		"the last day of a leap year":          {text: "0 6,12 * * *", zone: berlin, from: "2028-12-30T23:00:00Z", opts: last, want: "06:00+01 12:00+01"},
		"half an hour is set back": {
			text: "40 1 * * *", zone: "Australia/Lord_Howe", from: "2026-04-04T13:00:00Z",
			opts: first, want: "01:40+11",
		},
		"a midnight is skipped":         {text: "0 0 * * *", zone: "Asia/Beirut", from: "2026-03-28T12:00:00Z", opts: after, want: "01:00+03"},
		"a day is left out":             {text: "0 12 * * *", zone: "Pacific/Apia", from: "2011-12-30T00:00:00Z", opts: after, want: "00:00+14 12:00+14"},
		"an interval has no part in it": {text: "@every 8h", zone: berlin, from: autumn, opts: first, want: "07:00+01 15:00+01 23:00+01"},
		"a zone of the schedule's own":  {text: "TZ=Europe/Berlin 30 2 * * *", zone: "UTC", from: autumn, opts: last, want: "01:30Z"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := parse(t, tc.text, tc.zone, tc.opts)
			loc, err := zone.Load(tc.zone)
			if err != nil {
				t.Fatal(err)
			}
			from := instant(t, tc.from)
			var got []string
			for at, ok := s.Next(from); ok && at.Before(from.Add(25*time.Hour)); at, ok = s.Next(at) {
				got = append(got, at.In(loc).Format("15:04Z07"))
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatTheLibraryWouldRead are texts that the library behind the calendar
// reads otherwise than the API server.
func TestWhatTheLibraryWouldRead(t *testing.T) {
	refused := []string{
		"0 0 * * 7", "0 22-2 * * *", "0 0 L * *", "0 0 15W * *", "0 0 * * FRI#3", "H * * * *", "0 0 0 1 1 *", "0 0 1 1 * 2030",
		"@reboot", "@Daily", " @daily", "",
	}
	for _, text := range refused {
		if _, err := schedule.Parse(text, time.UTC, schedule.Options{}); err == nil {
			t.Errorf("%q is admitted", text)
		}
	}
	admitted := map[string]string{
		"*/60 * * * *":                           "2026-01-01T01:00:00Z",
		"0 0 * * THU":                            "2026-01-08T00:00:00Z",
		"0 0 * * 1/2":                            "2026-01-02T00:00:00Z",
		"0 0 * * 5/2":                            "2026-01-02T00:00:00Z",
		strings.Repeat("5,", 1000) + "5 * * * *": "2026-01-01T00:05:00Z",
		"@every 1ms":                             "2026-01-01T00:00:01Z",
		"CRON_TZ=Asia/Tokyo  0 9 * * *":          "2026-01-02T00:00:00Z",
		"0 0 13 * FRI":                           "2026-01-02T00:00:00Z",
		"0 0 29 2 ?":                             "2028-02-29T00:00:00Z",
		"15 10-12/9223372036854775807 *-9-9/1 * *": "2026-01-01T10:15:00Z",
	}
	from := instant(t, "2026-01-01T00:00:00Z")
	for text, want := range admitted {
		if next, ok := parse(t, text, "UTC", schedule.Options{}).Next(from); !ok || !next.Equal(instant(t, want)) {
			t.Errorf("%q: next = %s, %v, want %s", text, next, ok, want)
		}
	}
}

func TestNeverDue(t *testing.T) {
	for _, text := range []string{"0 0 31 2 *", ", * * * *", "* , * * *", "* * * , *", "0 0 , * *", "0 0 30,31 feb ?"} {
		s := parse(t, text, "Europe/Berlin", schedule.Options{SkippedHour: schedule.RunAfter, RepeatedHour: schedule.Last})
		from := instant(t, "0001-01-01T00:00:00Z")
		until := instant(t, "9999-12-31T23:59:59Z")
		if next, ok := s.Next(from); ok {
			t.Errorf("%q: next = %s", text, next)
		}
		if last, ok := s.Last(from, until); ok || s.Count(from, until) != 0 {
			t.Errorf("%q: last = %s, count = %d", text, last, s.Count(from, until))
		}
	}
}

// TestLongAbsence asks which times came within five hundred years.
func TestLongAbsence(t *testing.T) {
	cases := map[string]string{
		"* * * * *":            "2026-06-14T15:09:00Z", // a Sunday
		"30 6-16/4 * * 1-5":    "2026-06-12T14:30:00Z",
		"0 0 28 2 *":           "2026-02-28T00:00:00Z",
		"* * * 1 *":            "2026-01-31T23:59:00Z",
		"@every 7h":            "2026-06-14T15:00:00Z",
		"@yearly":              "2026-01-01T00:00:00Z",
		"*/7 */5 */11 */2 */3": "2026-05-31T20:56:00Z",
	}
	from, until := instant(t, "1504-01-01T00:00:00Z"), instant(t, "2026-06-14T15:09:26Z")
	for text, want := range cases {
		s := parse(t, text, "UTC", schedule.Options{})
		if last, ok := s.Last(from, until); !ok || !last.Equal(instant(t, want)) {
			t.Errorf("%q: last = %s, %v, want %s", text, last, ok, want)
		}
		if s.Count(from, until) <= schedule.CountLimit {
			t.Errorf("%q: count = %d", text, s.Count(from, until))
		}
	}
}

// Fields are what a text selects, however it is written.
func TestFields(t *testing.T) {
	same := [][]string{
		{"0,20,40 2 * feb mon-fri", "*/20 2 ? 2 1-5", "TZ=UTC 0/20 2 */1 2 1,2,3,4,5"},
		{"@weekly", "0 0 * * 0", "CRON_TZ=UTC 0 0 * * sun"},
	}
	for _, texts := range same {
		want := schedule.Fields(texts[0])
		if len(want) != 5 {
			t.Fatalf("%q has %d fields", texts[0], len(want))
		}
		for _, text := range texts[1:] {
			if diff := cmp.Diff(want, schedule.Fields(text)); diff != "" {
				t.Errorf("%q and %q (-first +second):\n%s", texts[0], text, diff)
			}
		}
	}
	every, all := schedule.Fields("0 0 * * *")[2], schedule.Fields("0 0 1-31 * *")[2]
	if !every.Every || all.Every || !cmp.Equal(every.Values, all.Values) {
		t.Errorf("day of month: * selects %+v, 1-31 selects %+v", every, all)
	}
	for _, text := range []string{"@every 5m", "61 * * * *", "TZ=UTC", "@never"} {
		if got := schedule.Fields(text); got != nil {
			t.Errorf("%q has the fields %+v", text, got)
		}
	}
}
