// Package issuer keeps the certificates by which the engine and its callers know
// each other: an authority and the certificates that it signs, each in a Secret
// that exists already. It makes them where they are missing, and renews them in
// time.
//
// # Changing the authority
//
// Who looks at a Secret may see what stood in it a while ago: files of mounted
// Secrets follow within minutes. So that nobody is ever shown a certificate by an
// authority that he does not know yet, a change takes three steps:
//
//  1. announced: the next authority is added to every ca.crt, and signs nothing.
//  2. in force: once every ca.crt has had it for the propagation period, it signs
//     all certificates anew.
//  3. forgotten: the authority before stays in every ca.crt until the last
//     certificate that it signed has expired, copies of it that somebody took
//     elsewhere included.
//
// All state stands in the authority's Secret, so whoever leads next goes on where
// the last one stopped; a write that is lost is made good by the next look.
package issuer
