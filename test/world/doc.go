// Package world is a cluster in virtual time. The real executor, with client-go's
// real informers, and the real engine run in it against an API server in memory,
// beside users, kubelets and other controllers, while requests, watches, the engine
// and the executor itself fail. Judges look at every write.
//
// A plan is everything that will happen, drawn from one seed before anything runs,
// so that it can be read, replayed and made smaller. A world plays one plan inside
// one testing/synctest bubble: hours pass in milliseconds.
//
// Order comes from time. Every request, answer and event of a watch travels for a
// while that follows from the seed and from what it is, to the nanosecond, so that
// nearly nothing happens at the same instant, and the same seed gives nearly always
// the same log of writes.
package world
