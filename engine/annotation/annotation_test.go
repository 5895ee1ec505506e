package annotation_test

import (
	"slices"
	"strings"
	"testing"

	"jobpolicy.dev/engine/annotation"
)

func TestWhatCannotBeReadIsNamed(t *testing.T) {
	cases := map[string]struct {
		text    string
		number  int64
		ok      bool
		choice  int
		problem []string
	}{
		"a number": {text: "7", number: 7, ok: true, problem: []string{`annotation a: expected One, Two or Three, found "7"; it is left aside`}},
		"a word":   {text: "Two", choice: 1, problem: []string{`annotation a: expected a whole number from 0 to 9, found "Two"; it is left aside`}},
		"a number that is too large": {text: "10", problem: []string{
			`annotation a: expected a whole number from 0 to 9, found "10"; it is left aside`,
			`annotation a: expected One, Two or Three, found "10"; it is left aside`,
		}},
		"a text without end": {text: strings.Repeat("x", 63) + "ü", problem: []string{
			`annotation a: expected a whole number from 0 to 9, found "` + strings.Repeat("x", 63) + `…"; it is left aside`,
			`annotation a: expected One, Two or Three, found "` + strings.Repeat("x", 63) + `…"; it is left aside`,
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := annotation.Reader{Annotations: map[string]string{"a": tc.text}}
			if n, ok := r.Number("a", "a whole number", 0, 9); n != tc.number || ok != tc.ok {
				t.Errorf("number %d, %v; want %d, %v", n, ok, tc.number, tc.ok)
			}
			if n := r.Choice("a", "One", "Two", "Three"); n != tc.choice {
				t.Errorf("choice %d, want %d", n, tc.choice)
			}
			if !slices.Equal(r.Problems, tc.problem) {
				t.Errorf("problems %q, want %q", r.Problems, tc.problem)
			}
		})
	}
}

func TestAnAnnotationThatIsNotThereIsNoProblem(t *testing.T) {
	r := annotation.Reader{}
	if n, ok := r.Number("a", "a whole number", 0, 9); n != 0 || ok || r.Choice("a", "One", "Two") != 0 || r.Problems != nil {
		t.Errorf("number %d, %v; problems %q; want nothing", n, ok, r.Problems)
	}
}

func TestLimitsOfTheContract(t *testing.T) {
	many := map[string]string{}
	for i := range 300 {
		many[strings.Repeat("n", i+1)] = strings.Repeat("x", 4000)
	}
	cases := map[string]struct {
		annotations map[string]string
		want        string
	}{
		"none":                 {nil, ""},
		"as long as it may be": {map[string]string{"a": strings.Repeat("x", 4096)}, ""},
		"a long value":         {map[string]string{"a": strings.Repeat("x", 4097)}, "must have values of at most 4096 bytes, has one of 4097"},
		"many values":          {many, "must have at most 1048576 bytes, has 1245150"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := annotation.Problem(tc.annotations); got != tc.want {
				t.Errorf("problem %q, want %q", got, tc.want)
			}
		})
	}
}
