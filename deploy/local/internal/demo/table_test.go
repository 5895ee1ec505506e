package demo

import (
	"strings"
	"testing"

	"jobpolicy.dev/deploy/local/must"
)

func sample() []row {
	return []row{
		{name: "pi", mode: "single", active: 1, condition: "-", reason: "1 pod is active of 1 wanted"},
		{name: "retry-never", mode: "single", failed: 4, condition: "Failed", reason: strings.Repeat("long ", 40), ended: true},
	}
}

func TestTableOnATerminalIsRedrawnInPlaceAndNeverWraps(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	tbl := newTable(&b, func() (int, int) { return 72, 40 })
	tbl.draw(sample())
	first := b.Len()
	tbl.draw(sample())
	if !strings.HasPrefix(b.String()[first:], "\x1b[3A") {
		t.Errorf("the second drawing does not go back over the 3 lines of the first: %q", b.String()[first:])
	}
	for line := range strings.Lines(b.String()[:first]) {
		text := strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "\x1b[2K")
		if n := len([]rune(text)); n > 72 {
			t.Errorf("a line has %d columns: %q", n, text)
		}
	}
}

func TestTableElsewhereShowsEachChangeOnce(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	tbl := newTable(&b, nil)
	rows := sample()
	tbl.draw(rows)
	tbl.draw(rows)
	rows[0].succeeded = 1
	tbl.draw(rows)
	must.Equal(t, "lines", []string{"EXAMPLE", "pi", "retry-never", "pi"}, firstWords(b.String()))
}

func TestTableWithoutRoomShowsWhatIsNotOverYet(t *testing.T) {
	t.Parallel()
	rows := append(sample(), row{name: "a"}, row{name: "b"}, row{name: "c"})
	cases := map[string]struct {
		height int
		want   []string
	}{
		"room for all":           {7, []string{"EXAMPLE", "pi", "retry-never", "a", "b", "c"}},
		"an ended one is hidden": {6, []string{"EXAMPLE", "pi", "a", "b", "…"}},
		"most are hidden":        {4, []string{"EXAMPLE", "pi", "…"}},
		"no room":                {1, []string{"EXAMPLE", "…"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			newTable(&b, func() (int, int) { return 120, tc.height }).draw(rows)
			text := strings.TrimSuffix(strings.ReplaceAll(b.String(), "\x1b[2K", ""), "\x1b[J")
			must.Equal(t, "lines", tc.want, firstWords(text))
		})
	}
}

func TestNotesStayAboveTheTable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	tbl := newTable(&b, func() (int, int) { return 120, 40 })
	tbl.draw(sample())
	first := b.Len()
	tbl.note("$ a command")
	tbl.draw(sample())
	text := strings.NewReplacer("\x1b[2K", "", "\x1b[3A", "", "\x1b[J", "").Replace(b.String()[first:])
	must.Equal(t, "lines", []string{"$", "EXAMPLE", "pi", "retry-never"}, firstWords(text))
	third := b.Len()
	tbl.draw(sample())
	if redrawn := b.String()[third:]; !strings.HasPrefix(redrawn, "\x1b[3A") || strings.Contains(redrawn, "a command") {
		t.Errorf("the note is drawn over: %q", redrawn)
	}
}

func TestNarrowTerminalHasNoModeButTheEnginesWords(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		width    int
		wantMode bool
	}{
		"wide":   {120, true},
		"narrow": {100, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			newTable(&b, func() (int, int) { return tc.width, 40 }).draw(sample())
			if got := strings.Contains(b.String(), "MODE") && strings.Contains(b.String(), "single"); got != tc.wantMode {
				t.Errorf("the column MODE is there: %t", got)
			}
			if !strings.Contains(b.String(), "1 pod is active of") {
				t.Errorf("the engine's words are cut off: %s", b.String())
			}
		})
	}
}

func firstWords(text string) []string {
	var words []string
	for line := range strings.Lines(text) {
		words = append(words, strings.Fields(line)[0])
	}
	return words
}
