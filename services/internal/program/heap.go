package program

import "os"

// headroom makes the garbage collector leave a small heap alone, for as long as
// the caller holds on to what it returns. That counts as heap and is never
// touched, so that the operating system gives no memory for it.
//
// A service holds 5 to 20 MiB, and what it works with is short-lived: it would
// collect many times a second, each time to look at the same live objects. What a
// large heap may grow to rises by so many bytes and is not multiplied. Whoever
// sets GOGC or GOMEMLIMIT has decided, and gets what these say: nil.
func headroom(bytes int) []byte {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	return make([]byte, bytes)
}
