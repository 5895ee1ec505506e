// Package apiserver is an API server in memory, for simulated worlds.
//
// It is an http.RoundTripper: client-go uses it like a real one, without a socket. The parts
// between the wire and the storage are upstream's own: the request handlers, the
// registries with their strategies and validation, the codecs. Our own parts are below and
// beside them: the storage with its watches, admission, and garbage collection. Package
// fidelity compares all of it with the real API server.
//
// UIDs, generated names and resource versions follow from the sequence of requests: they
// come from counters. The server never sleeps, and has no goroutine of its own except one
// for each open watch, so a world may run inside a testing/synctest bubble.
//
// Weighed against client-go's fake clientset, which validates nothing, and envtest, which
// runs in real time.
package apiserver
