package logging

import "strings"

// Text cuts a text after maxBytes, and removes what is not UTF-8. A text that was cut ends in an
// ellipsis, which comes on top of maxBytes.
func Text(s string, maxBytes int) string {
	if len(s) > maxBytes {
		s = s[:maxBytes] + "…"
	}
	return strings.ToValidUTF8(s, "")
}
