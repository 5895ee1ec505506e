// Package events sends Kubernetes events. client-go's recorder has room for 25 events and
// sends one after the other, so it loses events of a burst. This one has room for 50,000,
// sends several at the same time, and tries again if the API server does not accept one for
// now. Events of one object arrive in the order in which they were recorded.
//
// client-go (record.EventCorrelator) decides which events of one object are combined or
// left out.
package events
