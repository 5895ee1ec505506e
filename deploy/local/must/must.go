// Package must ends a test in which something fails that only prepares what is tested. It stands here, and not in test/kit,
// because the tests of this module need it, too.
package must

// A Test is a *testing.T, or one of package rapid.
type Test interface {
	Helper()
	Fatal(args ...any)
}

// Succeed ends the test if there is an error.
func Succeed(t Test, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
