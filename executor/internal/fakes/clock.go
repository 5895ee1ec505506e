package fakes

import (
	"sync/atomic"
	"time"
)

// A Clock is a wall clock that can be set. It is right at first.
type Clock struct{ ahead atomic.Int64 }

// Now is what the clock shows.
func (c *Clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Set sets the clock forward, or back if by is below 0.
func (c *Clock) Set(by time.Duration) { c.ahead.Add(int64(by)) }
