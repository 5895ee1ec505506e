// Package remote runs docs/remote.md: its commands and programs, in the order of the
// page, against an engine over mutual TLS.
package remote
