// Package must says in one line what must hold in a test. It stands here, and not in test/kit, because the tests of this
// module need it, too.
package must

import "github.com/google/go-cmp/cmp"

// A Test is a *testing.T, or one of package rapid.
type Test interface {
	Helper()
	Fatal(args ...any)
	Errorf(format string, args ...any)
}

// Succeed ends the test if there is an error: what fails only prepares what is tested.
func Succeed(t Test, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Equal shows how a value differs from the one that is wanted, and lets the test go on.
func Equal(t Test, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
