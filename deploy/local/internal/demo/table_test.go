package demo

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	tbl := newTable(&b, func() int { return 72 })
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
	var names []string
	for line := range strings.Lines(b.String()) {
		names = append(names, strings.Fields(line)[0])
	}
	if diff := cmp.Diff([]string{"JOB", "pi", "retry-never", "pi"}, names); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestLogsAreJudged(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		judge func([]string) error
		logs  []string
		good  bool
	}{
		"2000 digits":                {digitsOfPi, []string{"3.14159265358979323846" + strings.Repeat("0", 1979) + "\n"}, true},
		"too few digits":             {digitsOfPi, []string{"3.14159265358979323846"}, false},
		"not pi":                     {digitsOfPi, []string{strings.Repeat("1", 2001)}, false},
		"no log":                     {digitsOfPi, nil, false},
		"all items once":             {eachItemOnce, []string{"item 1\nitem 3\nitem 5\n", "item 2\nitem 4\nitem 6\nitem 7\n", "item 8\nitem 9\n"}, true},
		"an item twice":              {eachItemOnce, []string{"item 1\nitem 2\nitem 3\nitem 4\nitem 5\n", "item 5\nitem 6\nitem 7\nitem 8\nitem 9\n"}, false},
		"each index":                 {eachIndexOnce, []string{"My index is 1\n", "My index is 0\n", "My index is 2", "My index is 4", "My index is 3"}, true},
		"an index is missing":        {eachIndexOnce, []string{"My index is 0", "My index is 1", "My index is 2", "My index is 4"}, false},
		"four full runs":             {fourFullRuns, []string{"completed", "completed", "completed", "completed"}, true},
		"the last run was cut short": {fourFullRuns, []string{"completed", "completed", "completed", "Hello"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := tc.judge(tc.logs); (err == nil) != tc.good {
				t.Errorf("the judgement is %v", err)
			}
		})
	}
}

func TestExamplesAreReadable(t *testing.T) {
	t.Parallel()
	examples, err := loadExamples("../../../examples")
	if err != nil {
		t.Fatal(err)
	}
	if len(examples) != len(examplesInOrder()) {
		t.Errorf("%d examples", len(examples))
	}
}
