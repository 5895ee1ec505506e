// Package issuer keeps the certificates by which the engine and its callers know
// each other: an authority and the certificates that it signs, each in a Secret
// that exists already. It makes missing certificates, and renews the others in time.
//
// Weighed against open-policy-agent/cert-controller v0.16: that makes certificates of
// webhooks alone, in a manager of controller-runtime, and announces no authority before
// it signs. The chart can use cert-manager instead of this package.
//
// # Changing the authority
//
// A reader of a Secret may see an old version of it: the files of a mounted Secret change
// minutes later. So that nobody is shown a certificate of an authority that it does not
// know yet, a change takes three steps:
//
//  1. announced: the next authority is added to every ca.crt, and signs nothing.
//  2. in force: once every ca.crt has had it for the propagation period, it signs
//     all certificates anew.
//  3. forgotten: the previous authority stays in every ca.crt until the last
//     certificate that it signed has expired, because there may be copies of that
//     certificate elsewhere.
//
// # Clocks and damage
//
// A clock that is far ahead for a moment makes certificates that are not valid yet, and
// times in the future. With the right clock, the next check replaces these certificates,
// and shortens times that are too far ahead to be right. An authority that becomes valid
// within the next hour is kept, so that a clock that is an hour behind does not replace a
// good one; but none comes in force before it is valid. A rotation that was asked for is
// begun again if its authority is lost.
//
// If the authority's key cannot be read, another authority signs at once. The certificate
// without a key stays in every ca.crt, as an earlier authority does.
//
// All state is in the authority's Secret. So the next leader goes on where the last one
// stopped, and the next check makes up for a write that was lost.
package issuer
