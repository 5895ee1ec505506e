package conformance

import (
	"testing"
)

func TestDigest(t *testing.T) {
	if first, second := Digest(), Digest(); len(first) != 2*digestBytes || first != second {
		t.Errorf("%q, then %q, want the same %d digits", first, second, 2*digestBytes)
	}
}
