// Package apiserver is an API server in memory, for simulated worlds.
//
// It is an http.RoundTripper: client-go speaks to it as to a real one, without
// a socket. What stands between the wire and the storage is upstream's own: the
// request handlers, the registries with their strategies and validation, the
// codecs. What is ours is below and beside them: the storage with its watches,
// admission, and the collection of garbage. Package fidelity holds all of it
// against the real API server.
//
// Whatever the server hands out follows from the sequence of requests: UIDs,
// generated names and resource versions come from counters. The server never
// sleeps and has no goroutine of its own but one for each open watch, so a
// world may run inside a testing/synctest bubble.
package apiserver
