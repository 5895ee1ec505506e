package schedule_test

import (
	"testing"
	"time"

	"jobpolicy.dev/engine/schedule"
	"jobpolicy.dev/engine/zone"
)

// FuzzSchedule reads any text in any zone and asks it for times. Nothing panics or
// takes long, and the answers agree with each other.
func FuzzSchedule(f *testing.F) {
	for _, text := range []string{"0 2 * * *", "30 6-16/4 * * 1-5", "@every 1h30m", "TZ=0", "TZ=Asia/Tokyo @daily", ",,, * * * *", "0 0 31 2 *"} {
		f.Add(text, "Europe/Berlin", int64(1_790_000_000), uint32(3_000_000), uint8(0))
		f.Add(text, "Pacific/Apia", int64(1_325_200_000), uint32(300_000), uint8(5))
		f.Add(text, "Africa/Monrovia", int64(-3_000_000_000), uint32(4_000_000_000), uint8(4))
	}
	f.Fuzz(func(t *testing.T, text, zoneName string, second int64, length uint32, options uint8) {
		loc, err := zone.Load(zoneName)
		if err != nil {
			loc = time.UTC
		}
		opts := schedule.Options{RepeatedHour: schedule.RepeatedHour(options % 3), SkippedHour: schedule.SkippedHour(options / 3 % 2)}
		s, err := schedule.Parse(text, loc, opts)
		if err != nil {
			return
		}
		const most = 200_000_000_000
		after := time.Unix(second%most, 0).UTC()
		until := after.Add(time.Duration(length) * time.Second)
		next, ok := s.Next(after)
		if ok && !next.After(after) {
			t.Fatalf("next of %s = %s", after, next)
		}
		last, found := s.Last(after, until)
		switch {
		case found != (ok && !next.After(until)):
			t.Fatalf("next of %s = %s, but last until %s = %s, %v", after, next, until, last, found)
		case found && (last.Before(next) || last.After(until)):
			t.Fatalf("last of (%s, %s] = %s, next = %s", after, until, last, next)
		case found != (s.Count(after, until) > 0):
			t.Fatalf("count of (%s, %s] = %d, last = %s", after, until, s.Count(after, until), last)
		}
		if beyond, ok := s.Next(last); found && ok && !beyond.After(until) {
			t.Fatalf("last of (%s, %s] = %s, but %s comes after", after, until, last, beyond)
		}
	})
}
