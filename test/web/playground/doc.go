// Package playground tests the page of the playground in a real browser: what a person
// sees, and that it is what the command kubectl jobpolicy simulate says.
package playground
