// Package fakes has what the tests of several controllers share: an API server, and
// functions to run a controller and to wait for what it does.
package fakes
