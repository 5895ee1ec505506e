package testenv

import (
	"strings"
	"testing"
)

// WantError checks that err has the text in its message. The empty text stands for no error.
func WantError(t testing.TB, err error, text string) {
	t.Helper()
	switch {
	case text == "" && err != nil:
		t.Errorf("error %q, want none", err)
	case text != "" && (err == nil || !strings.Contains(err.Error(), text)):
		t.Errorf("error %v, want one with %q", err, text)
	}
}
