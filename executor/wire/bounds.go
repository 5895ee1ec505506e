package wire

import (
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// The API server keeps times and texts that no message of the contract can hold.
// One of them would make the whole request invalid, so each is brought within
// bounds on its way.

// earliest and latest are the limits of a protobuf timestamp.
var (
	earliest = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// Time brings a time of the API within the years 1 to 9999, in UTC. The API server accepts
// others in some notations, and offsets of a day, and neither the contract nor JSON can hold
// them.
func Time(t time.Time) time.Time {
	switch {
	case t.Before(earliest):
		return earliest
	case t.After(latest):
		return latest
	default:
		return t.UTC()
	}
}

// Timestamp converts a time of the API, after Time.
func Timestamp(t time.Time) *timestamppb.Timestamp { return timestamppb.New(Time(t)) }

// ellipsis ends a text that was cut.
const ellipsis = "…"

// Text converts a text of the API. It replaces invalid UTF-8. A text of more than most
// bytes is cut and ends in an ellipsis, so that readers see that it was longer.
func Text(s string, most int) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, string(utf8.RuneError))
	}
	if len(s) <= most {
		return s
	}
	end := most - len(ellipsis)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}
