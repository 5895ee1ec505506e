// Package events sends Kubernetes events. In contrast to client-go's recorder,
// which has room for 25 and posts one after the other, it loses none to a burst:
// what is recorded is queued, several posters send it, and what the API server does
// not take for now is tried again. Events of one object arrive in the order in which
// they were recorded.
//
// Which events of one object are combined or left out is client-go's business
// (record.EventCorrelator).
package events
