package zone_test

import (
	"testing"
	"time"

	"jobpolicy.dev/engine/zone"
)

func TestLoadKnowsClockChanges(t *testing.T) {
	berlin, err := zone.Load("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	summer := time.Date(2026, time.July, 1, 12, 0, 0, 0, time.UTC).In(berlin)
	if got := summer.Format(time.RFC3339 + " MST"); got != "2026-07-01T14:00:00+02:00 CEST" {
		t.Errorf("noon UTC in Berlin = %s", got)
	}
}

func TestEveryNameLoads(t *testing.T) {
	names := zone.Names()
	if len(names) < 500 {
		t.Errorf("%d zones, want some hundreds", len(names))
	}
	for _, name := range names {
		if loc, err := zone.Load(name); err != nil || loc.String() != name {
			t.Errorf("Load(%q) = %v, %v", name, loc, err)
		}
	}
}

func TestWhatIsNoZone(t *testing.T) {
	for _, name := range []string{"Local", "europe/berlin", "Europe/Atlantis", "../../etc/passwd", "/", "Europe"} {
		if loc, err := zone.Load(name); err == nil {
			t.Errorf("Load(%q) = %v, want an error", name, loc)
		}
	}
	for _, name := range []string{"", "UTC"} {
		if loc, err := zone.Load(name); err != nil || loc != time.UTC {
			t.Errorf("Load(%q) = %v, %v, want UTC", name, loc, err)
		}
	}
}
