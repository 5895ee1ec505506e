package answer

import "testing"

func TestOnly(t *testing.T) {
	if got, err := Only([]string{"a"}); got != "a" || err != nil {
		t.Errorf("got %q and the error %v, want a", got, err)
	}
	for _, answers := range [][]string{nil, {"a", "b"}} {
		if got, err := Only(answers); got != "" || err == nil {
			t.Errorf("%q: got %q, want an error", answers, got)
		}
	}
}
