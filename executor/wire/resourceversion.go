package wire

import "strconv"

// ResourceVersion reads a resource version, which is a decimal number that grows with every
// write. 0 means that it is unknown.
func ResourceVersion(s string) uint64 {
	rv, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0
	}
	return rv
}
