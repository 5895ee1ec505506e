// Package timestamp has the latest time that the contract's messages can hold. A
// Timestamp with a later time is not valid.
package timestamp

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// Last is the latest time that a Timestamp may hold.
var Last = time.Date(9999, time.December, 31, 23, 59, 59, 999_999_999, time.UTC)

// Of converts at to a Timestamp, or Last if at is later.
func Of(at time.Time) *timestamppb.Timestamp {
	if at.After(Last) {
		at = Last
	}
	return timestamppb.New(at)
}
