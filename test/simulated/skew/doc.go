// Package skew runs the simulated world with an engine and an executor of different
// versions: of this one and of the last release.
//
// The last release is the last tag vX.Y.Z. While there is none, it is the commit in
// last-release.txt. Its files are taken from the repository's history; where that does not
// reach back so far, as in a shallow clone, the tests are skipped, and say so.
package skew
