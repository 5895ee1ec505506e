package servicemain

import (
	"errors"
	"strings"
	"testing"

	"jobpolicy.dev/services/internal/testenv"
)

func newSet() (*Set, *int) {
	s := New("prog", "prog does things.")
	n := s.Group("Numbers").Int("number", 3, "How many `things`.")
	s.Group("Names").String("name", "", "Its name.")
	return s, n
}

func TestParseNamesTheFlagThatIsWrong(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
		"an unknown flag":              {[]string{"--nmae=x"}, "--nmae"},
		"a value of the wrong type":    {[]string{"--number=many"}, "--number"},
		"a flag without its value":     {[]string{"--name"}, "--name"},
		"an argument that is no flag":  {[]string{"--number=1", "stray"}, "stray"},
		"a flag with a single hyphen":  {[]string{"-number=1"}, "-number"},
		"an argument after two dashes": {[]string{"--", "--number"}, "--number"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, _ := newSet()
			err := s.Parse(tc.args)
			testenv.WantError(t, err, tc.want)
			if errors.Is(err, ErrHelp) {
				t.Errorf("Parse(%q) asks for help, want an error", tc.args)
			}
		})
	}
}

func TestParseSetsValuesOfEveryGroup(t *testing.T) {
	s, n := newSet()
	if err := s.Parse([]string{"--name", "a", "--number", "7"}); err != nil {
		t.Fatal(err)
	}
	if *n != 7 {
		t.Errorf("number = %d, want 7", *n)
	}
}

func TestUsagePrintsGroupsInOrderWithDefaults(t *testing.T) {
	s, _ := newSet()
	if err := s.Parse([]string{"--help"}); !errors.Is(err, ErrHelp) {
		t.Fatalf("Parse(--help) = %v, want ErrHelp", err)
	}
	var b strings.Builder
	if err := s.Usage(&b); err != nil {
		t.Fatal(err)
	}
	rest := b.String()
	for _, want := range []string{"prog does things.", "prog [flags]", "Numbers:", "--number things", "(default 3)", "Names:", "--name"} {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("usage lacks %q at its place:\n%s", want, b.String())
		}
		rest = after
	}
}
