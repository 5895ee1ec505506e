package hostnode

import (
	"testing"

	"pgregory.net/rapid"
)

func TestExpand(t *testing.T) {
	vars := map[string]string{"A": "a", "B": "$(A)", "EMPTY": ""}
	cases := map[string]struct{ in, want string }{
		"text without a reference":                  {"plain", "plain"},
		"one reference":                             {"x$(A)y", "xay"},
		"two references side by side":               {"$(A)$(A)", "aa"},
		"a value is not expanded again":             {"$(B)", "$(A)"},
		"an empty value":                            {"[$(EMPTY)]", "[]"},
		"an unknown variable stays":                 {"$(NO)-$(A)", "$(NO)-a"},
		"a doubled dollar is a dollar":              {"$$", "$"},
		"an escaped reference":                      {"$$(A)", "$(A)"},
		"an escaped dollar before a reference":      {"$$$(A)", "$a"},
		"twice escaped":                             {"$$$$(A)", "$$(A)"},
		"a reference that is not closed":            {"$(A", "$(A"},
		"an open reference does not hide the next":  {"$(A $(A)", "$(A $(A)"},
		"a lone dollar at the end":                  {"cost: 5$", "cost: 5$"},
		"a dollar before other text is not special": {"$HOME ${A} $1", "$HOME ${A} $1"},
		"a dollar before a letter of two bytes":     {"$é$(A)", "$éa"},
		"an empty name":                             {"$()", "$()"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := expand(tc.in, vars); got != tc.want {
				t.Errorf("expand(%q) = %q, want %q", tc.in, got, tc.want)
			}
		})
	}
}

func TestEscapedTextExpandsToItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		var escaped string
		for i := range len(text) {
			if text[i] == '$' {
				escaped += "$"
			}
			escaped += text[i : i+1]
		}
		if got := expand(escaped, map[string]string{"A": "a"}); got != text {
			t.Fatalf("expand(%q) = %q, want %q", escaped, got, text)
		}
	})
}
