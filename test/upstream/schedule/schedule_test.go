package schedule

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/robfig/cron/v3"
	"k8s.io/kubernetes/pkg/util/parsers"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/engine/schedule"
	"jobpolicy.dev/engine/zone"
	"jobpolicy.dev/services/differences"
)

const (
	triples   = 10_000
	texts     = 200_000
	timesEach = 25
)

// TestSameTimes draws schedules, zones and windows, and lists what is due. Where
// the lists differ, a clock change must explain it (clockReasons), and the
// engine's must be the times at which the clocks of the zone show what the
// schedule asks for, found minute by minute.
func TestSameTimes(t *testing.T) {
	d := newDraw(1)
	explained := map[string]int{}
	for range triples {
		text, zoneName := d.schedule(), d.zoneName()
		loc := load(t, zoneName)
		begin := d.begin(loc)
		ours := engineTimes(t, text, loc, begin)
		if at := leftOutDay(loc, begin); !at.IsZero() {
			explained[neverReturns]++
			checkMinutes(t, text, loc, at)
			continue
		}
		theirs := upstreamTimes(t, text, loc, begin)
		diff := cmp.Diff(theirs, ours)
		if diff == "" {
			continue
		}
		first := firstDifference(theirs, ours, loc)
		reason := explain(loc, begin, first)
		if reason == "" {
			t.Errorf("%q in %s from %s (-upstream +engine):\n%s", text, zoneName, begin, diff)
		}
		explained[reason]++
		checkMinutes(t, text, loc, first)
	}
	for _, d := range clockReasons {
		t.Logf("%d of %d differ: %s", explained[d.name], triples, d.name)
	}
}

func TestTheToleratedDifferenceHasItsRow(t *testing.T) {
	if err := differences.CheckTolerated("test/upstream/schedule", []string{toleratedRow}); err != nil {
		t.Error(err)
	}
}

func load(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := zone.Load(name)
	must.Succeed(t, err)
	return loc
}

// checkMinutes compares the engine's times with what the clocks show, minute by
// minute, from three days before at to three days after.
func checkMinutes(t *testing.T, text string, loc *time.Location, at time.Time) {
	t.Helper()
	parsed, err := parsers.ParseCronScheduleWithPanicRecovery(text)
	must.Succeed(t, err)
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return // clocks have no part in an interval
	}
	begin, end := at.AddDate(0, 0, -3).Truncate(time.Minute), at.AddDate(0, 0, 3)
	var want []time.Time
	for m := begin.Add(time.Minute); m.Before(end); m = m.Add(time.Minute) {
		if shows(spec, m.In(loc)) {
			want = append(want, m.UTC())
		}
	}
	s, err := schedule.Parse(text, loc, schedule.Options{})
	must.Succeed(t, err)
	var got []time.Time
	for next, ok := s.Next(begin); ok && next.Before(end); next, ok = s.Next(next) {
		got = append(got, next)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%q in %s around %s (-clock +engine):\n%s", text, loc, at, diff)
	}
}

// shows reports whether a clock shows a time of the schedule.
func shows(spec *cron.SpecSchedule, local time.Time) bool {
	has := func(set uint64, v int) bool { return set&(1<<v) != 0 }
	const star = 63
	day, weekday := has(spec.Dom, local.Day()), has(spec.Dow, int(local.Weekday()))
	dayMatches := day || weekday
	if has(spec.Dom, star) || has(spec.Dow, star) {
		dayMatches = day && weekday
	}
	return dayMatches && has(spec.Month, int(local.Month())) && has(spec.Hour, local.Hour()) && has(spec.Minute, local.Minute())
}

func upstreamTimes(t *testing.T, text string, loc *time.Location, at time.Time) []string {
	t.Helper()
	s, err := parsers.ParseCronScheduleWithPanicRecovery(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	if spec, ok := s.(*cron.SpecSchedule); ok {
		spec.Location = loc
	}
	var times []string
	for range timesEach {
		at = s.Next(at)
		if at.IsZero() {
			return append(times, "never")
		}
		times = append(times, at.In(loc).Format(time.RFC3339))
	}
	return times
}

func engineTimes(t *testing.T, text string, loc *time.Location, at time.Time) []string {
	t.Helper()
	s, err := schedule.Parse(text, loc, schedule.Options{})
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	var times []string
	for range timesEach {
		next, ok := s.Next(at)
		if !ok {
			return append(times, "never")
		}
		at = next
		times = append(times, at.In(loc).Format(time.RFC3339))
	}
	return times
}

// TestSameVerdicts draws texts close to schedules and wants the same ones
// admitted, and the others refused in the same words. Only where the built-in
// parser panics, or speaks of files of the machine, the words are ours.
func TestSameVerdicts(t *testing.T) {
	d := newDraw(2)
	admitted := 0
	for range texts {
		text := d.garbage()
		_, theirs := parsers.ParseCronScheduleWithPanicRecovery(text)
		_, ours := schedule.Parse(text, time.UTC, schedule.Options{})
		if words(theirs) != words(ours) {
			t.Errorf("%q: upstream %q, engine %q", text, words(theirs), words(ours))
		}
		if ours == nil {
			admitted++
		}
	}
	if admitted < texts/20 || admitted > texts*9/10 {
		t.Errorf("admitted %d of %d texts: the draw says little", admitted, texts)
	}
}

func words(err error) string {
	switch {
	case err == nil:
		return "admitted"
	case strings.HasPrefix(err.Error(), "invalid schedule format: "):
		return "panics"
	case strings.HasPrefix(err.Error(), "provided bad location "):
		return "bad location"
	}
	return err.Error()
}

// TestSameLatestTime compares the last time that is due with what counting from
// the front finds, over windows with up to some thousand times.
func TestSameLatestTime(t *testing.T) {
	d := newDraw(3)
	for range 2000 {
		text, zoneName := d.schedule(), d.zoneName()
		loc := load(t, zoneName)
		s, err := schedule.Parse(text, loc, schedule.Options{})
		must.Succeed(t, err)
		begin := d.begin(loc)
		until := begin.Add(time.Duration(d.Int64N(3*24*3600)) * time.Second)
		var want time.Time
		n := int64(0)
		for at, ok := s.Next(begin); ok && !at.After(until); at, ok = s.Next(at) {
			want, n = at, n+1
		}
		got, ok := s.Last(begin, until)
		if ok != (n > 0) || !got.Equal(want) {
			t.Errorf("%q in %s: last of (%s, %s] = %s, want %s", text, zoneName, begin, until, got, want)
		}
		if count := s.Count(begin, until); count != n && n <= schedule.CountLimit {
			t.Errorf("%q in %s: count of (%s, %s] = %d, want %d", text, zoneName, begin, until, count, n)
		}
	}
}
