package writes

import (
	"fmt"
	"testing"
	"time"
)

// tries lets a write of some objects be refused several times, and counts how often to tell of it.
func tries(r *Refusals, times int, text string, objects ...string) (told int) {
	for n := range times {
		for _, object := range objects {
			why := fmt.Sprintf(`pods "%s" is forbidden: %s (version %d, after %d.%ds)`, object, text, 4000+n, n, n)
			if r.Refused(ReleasePod, object, time.Unix(int64(n), 0), why, object) {
				told++
			}
		}
	}
	return told
}

func TestARefusalIsToldOfOnceForEachText(t *testing.T) {
	r := &Refusals{}
	for _, step := range []struct {
		what  string
		told  int
		wants int
	}{
		{"two tries of each of three pods", tries(r, 2, "one", "a", "b", "c"), 0},
		{"a third one, and many more", tries(r, 20, "one", "a", "b", "c"), 1},
		{"another text", tries(r, 5, "other", "a"), 1},
		{"the first text again", tries(r, 5, "one", "b"), 0},
	} {
		if step.told != step.wants {
			t.Errorf("%s: told %d times, want %d", step.what, step.told, step.wants)
		}
	}
	if all := r.Standing(); len(all) != 1 || all[0].Objects != 3 || !all[0].Since.Equal(time.Unix(0, 0)) {
		t.Errorf("standing: %+v, want one of three pods since the first try", all)
	}
	r.Succeeded(ReleasePod, "a")
	r.Succeeded(ReleasePod, "b")
	if n := tries(r, 5, "one", "c"); n != 0 {
		t.Errorf("told %d times while another pod is still refused, want 0", n)
	}
	r.Succeeded(ReleasePod, "c")
	if n := len(r.Standing()); n != 0 {
		t.Errorf("%d refusals after all have succeeded, want none", n)
	}
	if n := tries(r, 5, "one", "a"); n != 1 {
		t.Errorf("told %d times when it is refused anew, want once", n)
	}
}

// A text that never repeats must not make an event at each try.
func TestEndlesslyNewTextsAreToldOfSeldom(t *testing.T) {
	r, told := &Refusals{}, 0
	for n := range 1000 {
		if r.Refused(UpdateStatus, "", time.Now(), fmt.Sprintf("no%d", n)) {
			told++
		}
	}
	if told > maxTold {
		t.Errorf("told %d times, want at most %d", told, maxTold)
	}
}

func TestEachKindIsKnownFromItsEvent(t *testing.T) {
	for _, k := range Kinds() {
		reason, message := k.Event("why")
		for _, prefix := range []string{"", combined} {
			if got, why, ok := OfEvent(k.announcement().cron, reason, prefix+message); !ok || got != k || why != "why" {
				t.Errorf("%s: %q is read as %q, %q", reason, prefix+message, got, why)
			}
		}
	}
	if k, _, ok := OfEvent(false, "SuccessfulCreate", "Created pod: a"); ok {
		t.Errorf("a success is read as a refusal of %s", k)
	}
}
