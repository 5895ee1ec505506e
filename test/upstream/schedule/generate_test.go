package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"jobpolicy.dev/engine/zone"
)

// A draw makes random schedules, zones and windows; the same seed, the same ones.
type draw struct{ *rand.Rand }

func newDraw(seed uint64) draw { return draw{rand.New(rand.NewPCG(seed, 0))} }

func pick[T any](d draw, from ...T) T { return from[d.IntN(len(from))] }

var (
	monthNames = []string{"jan", "FEB", "Mar", "apr", "MAY", "Jun", "jul", "AUG", "sep", "oct", "NOV", "dec"}
	dayNames   = []string{"sun", "MON", "Tue", "wed", "THU", "Fri", "sat"}
	zoneNames  = slices.Sorted(slices.Values(zone.Names()))
)

// clockChanges are zones where changes of the clock are unlike most: at
// midnight, by half an hour, by a day, twice in a year.
var clockChanges = []string{
	"America/Sao_Paulo", "Asia/Beirut", "Africa/Cairo", "America/Havana", "Australia/Lord_Howe", "Pacific/Apia",
	"Africa/Casablanca", "Africa/El_Aaiun", "Europe/Berlin", "America/New_York", "Asia/Tehran", "America/Asuncion",
	"Antarctica/Troll", "Pacific/Kwajalein", "Europe/Dublin", "America/Nuuk", "Asia/Kathmandu",
}

// schedule draws a text that the API server admits, nearly always.
func (d draw) schedule() string {
	if d.IntN(12) == 0 {
		return pick(d, "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly", d.interval())
	}
	fields := []string{
		d.field(0, 59, nil, 3), d.field(0, 23, nil, 3), d.field(1, 31, nil, 2), d.field(1, 12, monthNames, 2), d.field(0, 6, dayNames, 2),
	}
	return strings.Join(fields, pick(d, " ", "  ", "\t"))
}

func (d draw) interval() string {
	return fmt.Sprintf("@every %dh%dm%ds", d.IntN(30), d.IntN(90), d.IntN(90))
}

// field draws a list; wild is how many times out of 4 it is a plain *.
func (d draw) field(low, high int, names []string, wild int) string {
	if d.IntN(6) < wild {
		return pick(d, "*", "*", "?")
	}
	items := make([]string, 1+d.IntN(3))
	for i := range items {
		items[i] = d.item(low, high, names)
	}
	return strings.Join(items, ",")
}

func (d draw) item(low, high int, names []string) string {
	first := low + d.IntN(high-low+1)
	last := first + d.IntN(high-first+1)
	text := func(v int) string {
		if names != nil && d.IntN(2) == 0 {
			return names[v-low]
		}
		return fmt.Sprint(v)
	}
	step := 1 + d.IntN(high+5)
	return pick(d,
		text(first), text(first), text(first)+"-"+text(last), text(first)+"-"+text(last),
		fmt.Sprintf("%s-%s/%d", text(first), text(last), step), fmt.Sprintf("%s/%d", text(first), step), fmt.Sprintf("*/%d", step))
}

// zoneName draws a zone; every other one is odd.
func (d draw) zoneName() string {
	if d.IntN(2) == 0 {
		return pick(d, clockChanges...)
	}
	return pick(d, zoneNames...)
}

// begin draws where a window begins; every other one close to a clock change.
func (d draw) begin(loc *time.Location) time.Time {
	t := time.Unix(d.Int64N(75*365*24*3600), d.Int64N(2)*500_000_000).In(loc)
	if d.IntN(2) == 0 {
		return t
	}
	_, change := t.ZoneBounds()
	if change.IsZero() {
		return t
	}
	return change.Add(time.Duration(d.IntN(72*3600)-48*3600) * time.Second)
}

// garbage draws a text near a schedule: mostly one that something was done to.
func (d draw) garbage() string {
	text := []byte(d.schedule())
	const letters = "0123456789*?,-/ @LWH#abcTZ=+\t."
	for range 1 + d.IntN(3) {
		at := d.IntN(len(text) + 1)
		switch d.IntN(3) {
		case 0:
			text = slices.Insert(text, at, letters[d.IntN(len(letters))])
		case 1:
			text = slices.Delete(text, at, min(len(text), at+1))
		case 2:
			copy(text[min(at, len(text)-1):], letters[d.IntN(len(letters)):][:1])
		}
		if len(text) == 0 {
			break
		}
	}
	return pick(d, "", "", "", "TZ=UTC ", "CRON_TZ=Europe/Berlin ", "TZ= ", "TZ=Nowhere/Land ", "TZ=", "TZ=UTC\t") + string(text)
}
