// Package events sends Kubernetes events, and loses none of a burst of up to 50,000. It sends
// several at the same time, and tries again if the API server does not accept one for now.
// Events of one object arrive in the order in which they were recorded.
//
// client-go's recorder (tools/record) has room for 1,000 events and sends one after the other.
// It loses what a burst has beyond that, and every event that the API server refuses, even if
// only for now. A webhook that hangs in one namespace delays the events of all others. At the
// end of the process, those that are not sent yet are lost. TestWhatClientGoLosesIsSent holds
// the two side by side.
//
// client-go (record.EventCorrelator) decides which events of one object are combined or left
// out.
package events
