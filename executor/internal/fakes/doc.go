// Package fakes has what the tests of several controllers share: an API server, an engine that
// follows a script, a clock, a configuration, and functions that run a controller and wait for
// what it does.
package fakes
