package servicemain

import "os"

// headroom makes the garbage collector run less often while the heap is small. It works
// as long as the caller keeps the slice that it returns: the slice counts as heap, but
// nobody touches it, so it takes no memory from the operating system.
//
// A service has 5 to 20 MiB of live objects and makes many short-lived ones. Without
// headroom it would collect many times a second, each time to scan the same live
// objects. With it, any heap may grow by so many bytes more; a higher GOGC would let a
// large heap grow by a multiple. If GOGC or GOMEMLIMIT is set, headroom returns nil.
func headroom(bytes int) []byte {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	return make([]byte, bytes)
}
